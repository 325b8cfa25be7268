-- Signed domains by operator and family of algorithms, for the operators of `operators`. Shares are of the signed domains of the
-- family in the snapshot.
SELECT
    parts.source AS source,
    parts.date AS date,
    parts.family AS family,
    parts.operator AS operator,
    parts.domains AS domains,
    CAST(parts.domains AS DOUBLE)
        / CAST(SUM(parts.domains) OVER (PARTITION BY parts.source, parts.date, parts.family) AS DOUBLE) AS share
FROM (
    SELECT
        counts.source,
        counts.date,
        members.family AS family,
        CASE WHEN top.operator IS NULL THEN '(others)' ELSE top.operator END AS operator,
        SUM(counts.domains) AS domains
    FROM counts
    INNER JOIN (SELECT DISTINCT algorithms, family FROM algorithm_members) AS members
        ON counts.algorithms = members.algorithms
    LEFT JOIN top_operators AS top ON counts.source = top.source AND counts.operator = top.operator
    WHERE counts.status = 'signed'
    GROUP BY
        counts.source,
        counts.date,
        members.family,
        CASE WHEN top.operator IS NULL THEN '(others)' ELSE top.operator END
) AS parts
ORDER BY source, date, family, operator
