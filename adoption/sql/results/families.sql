-- Signed domains by family of algorithms. A domain counts once for each family.
SELECT
    parts.source AS source,
    parts.date AS date,
    parts.family AS family,
    parts.domains AS domains,
    CAST(parts.domains AS DOUBLE) / CAST(totals.signed AS DOUBLE) AS share
FROM (
    SELECT counts.source, counts.date, members.family AS family, SUM(counts.domains) AS domains
    FROM counts
    INNER JOIN (SELECT DISTINCT algorithms, family FROM algorithm_members) AS members
        ON counts.algorithms = members.algorithms
    WHERE counts.status = 'signed'
    GROUP BY counts.source, counts.date, members.family
) AS parts
INNER JOIN (
    SELECT source, date, SUM(domains) AS signed FROM counts WHERE status = 'signed' GROUP BY source, date
) AS totals ON parts.source = totals.source AND parts.date = totals.date
ORDER BY source, date, family
