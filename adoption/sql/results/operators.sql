-- Domains by operator: the ten operators of each source with the most signed domains on any date, and all others together.
-- `signed_share` is of the domains of the operator; `share_of_signed` is of all signed domains of the snapshot.
SELECT
    parts.source AS source,
    parts.date AS date,
    parts.operator AS operator,
    parts.domains AS domains,
    parts.signed AS signed,
    CAST(parts.signed AS DOUBLE) / CAST(parts.domains AS DOUBLE) AS signed_share,
    CAST(parts.signed AS DOUBLE) / NULLIF(CAST(totals.signed AS DOUBLE), 0.0) AS share_of_signed
FROM (
    SELECT
        counts.source,
        counts.date,
        CASE WHEN top.operator IS NULL THEN '(others)' ELSE top.operator END AS operator,
        SUM(counts.domains) AS domains,
        SUM(CASE WHEN counts.status = 'signed' THEN counts.domains ELSE 0 END) AS signed
    FROM counts
    LEFT JOIN top_operators AS top ON counts.source = top.source AND counts.operator = top.operator
    GROUP BY counts.source, counts.date, CASE WHEN top.operator IS NULL THEN '(others)' ELSE top.operator END
) AS parts
INNER JOIN (
    SELECT source, date, SUM(CASE WHEN status = 'signed' THEN domains ELSE 0 END) AS signed
    FROM counts
    GROUP BY source, date
) AS totals ON parts.source = totals.source AND parts.date = totals.date
ORDER BY source, date, operator
