-- Domains by denial mechanism. Shares are of the domains whose mechanism is known.
SELECT
    parts.source AS source,
    parts.date AS date,
    parts.denial AS denial,
    parts.domains AS domains,
    CAST(parts.domains AS DOUBLE) / CAST(totals.domains AS DOUBLE) AS share
FROM (
    SELECT source, date, denial, SUM(domains) AS domains
    FROM counts
    WHERE denial IS NOT NULL
    GROUP BY source, date, denial
) AS parts
INNER JOIN (
    SELECT source, date, SUM(domains) AS domains FROM counts WHERE denial IS NOT NULL GROUP BY source, date
) AS totals ON parts.source = totals.source AND parts.date = totals.date
ORDER BY source, date, denial
