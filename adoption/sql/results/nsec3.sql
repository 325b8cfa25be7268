-- Domains with NSEC3 by parameters. Shares are of the domains with NSEC3.
SELECT
    parts.source AS source,
    parts.date AS date,
    parts.nsec3_iterations AS iterations,
    parts.nsec3_salt_octets AS salt_octets,
    parts.nsec3_opt_out AS opt_out,
    parts.domains AS domains,
    CAST(parts.domains AS DOUBLE) / CAST(totals.domains AS DOUBLE) AS share
FROM (
    SELECT source, date, nsec3_iterations, nsec3_salt_octets, nsec3_opt_out, SUM(domains) AS domains
    FROM counts
    WHERE denial = 'nsec3'
    GROUP BY source, date, nsec3_iterations, nsec3_salt_octets, nsec3_opt_out
) AS parts
INNER JOIN (
    SELECT source, date, SUM(domains) AS domains FROM counts WHERE denial = 'nsec3' GROUP BY source, date
) AS totals ON parts.source = totals.source AND parts.date = totals.date
ORDER BY source, date, iterations NULLS LAST, salt_octets NULLS LAST, opt_out NULLS LAST
