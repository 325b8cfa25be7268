-- Domains by popularity: `rank_up_to` is the highest rank of the class, which begins after that of the previous class. Shares are
-- of the domains of the class whose status is known.
SELECT
    source,
    date,
    rank_up_to,
    domains,
    signed,
    CAST(signed AS DOUBLE) / NULLIF(CAST(domains - unknown AS DOUBLE), 0.0) AS signed_share
FROM (
    SELECT
        source,
        date,
        rank_up_to,
        SUM(domains) AS domains,
        SUM(CASE WHEN status = 'signed' THEN domains ELSE 0 END) AS signed,
        SUM(CASE WHEN status = 'unknown' THEN domains ELSE 0 END) AS unknown
    FROM counts
    WHERE rank_up_to IS NOT NULL
    GROUP BY source, date, rank_up_to
) AS totals
ORDER BY source, date, rank_up_to
