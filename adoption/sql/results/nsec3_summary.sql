-- Domains with NSEC3 that follow RFC 9276: no additional iterations (section 3.1: "an iterations count of 0 MUST be used") and no
-- salt; and those with opt-out. Shares are of the domains with NSEC3.
SELECT
    source,
    date,
    domains,
    zero_iterations,
    no_salt,
    rfc9276,
    opt_out,
    CAST(zero_iterations AS DOUBLE) / CAST(domains AS DOUBLE) AS zero_iterations_share,
    CAST(no_salt AS DOUBLE) / CAST(domains AS DOUBLE) AS no_salt_share,
    CAST(rfc9276 AS DOUBLE) / CAST(domains AS DOUBLE) AS rfc9276_share,
    CAST(opt_out AS DOUBLE) / CAST(domains AS DOUBLE) AS opt_out_share
FROM (
    SELECT
        source,
        date,
        SUM(domains) AS domains,
        SUM(CASE WHEN nsec3_iterations = 0 THEN domains ELSE 0 END) AS zero_iterations,
        SUM(CASE WHEN nsec3_salt_octets = 0 THEN domains ELSE 0 END) AS no_salt,
        SUM(CASE WHEN nsec3_iterations = 0 AND nsec3_salt_octets = 0 THEN domains ELSE 0 END) AS rfc9276,
        SUM(CASE WHEN nsec3_opt_out THEN domains ELSE 0 END) AS opt_out
    FROM counts
    WHERE denial = 'nsec3'
    GROUP BY source, date
) AS totals
ORDER BY source, date
