-- The ten operators of each source with the most signed domains on any date.
SELECT source, operator, place
FROM (
    SELECT source, operator, ROW_NUMBER() OVER (PARTITION BY source ORDER BY signed DESC, operator) AS place
    FROM (
        SELECT source, operator, MAX(signed) AS signed
        FROM (
            SELECT source, date, operator, SUM(domains) AS signed
            FROM counts
            WHERE status = 'signed' AND operator IS NOT NULL
            GROUP BY source, date, operator
        ) AS daily
        GROUP BY source, operator
    ) AS best
) AS placed
WHERE place <= 10
