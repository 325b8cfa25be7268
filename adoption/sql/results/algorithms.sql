-- Signed domains by algorithm. Shares are of the signed domains; their sum is above 1 if domains have several algorithms.
SELECT
    parts.source AS source,
    parts.date AS date,
    parts.algorithm AS algorithm,
    parts.name AS name,
    parts.domains AS domains,
    CAST(parts.domains AS DOUBLE) / CAST(totals.signed AS DOUBLE) AS share
FROM (
    SELECT counts.source, counts.date, members.number AS algorithm, members.name AS name, SUM(counts.domains) AS domains
    FROM counts INNER JOIN algorithm_members AS members ON counts.algorithms = members.algorithms
    WHERE counts.status = 'signed'
    GROUP BY counts.source, counts.date, members.number, members.name
) AS parts
INNER JOIN (
    SELECT source, date, SUM(domains) AS signed FROM counts WHERE status = 'signed' GROUP BY source, date
) AS totals ON parts.source = totals.source AND parts.date = totals.date
ORDER BY source, date, algorithm
