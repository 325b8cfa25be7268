-- Domains with DS records by digest type (IANA registry "DS RR Type Digest Algorithms"). Shares are of the domains with DS
-- records whose digest types are known.
SELECT
    parts.source AS source,
    parts.date AS date,
    parts.digest AS digest,
    parts.domains AS domains,
    CAST(parts.domains AS DOUBLE) / CAST(totals.domains AS DOUBLE) AS share
FROM (
    SELECT counts.source, counts.date, members.number AS digest, SUM(counts.domains) AS domains
    FROM counts
    INNER JOIN (
        SELECT lists.ds_digests AS ds_digests, algorithms.number AS number
        FROM (SELECT DISTINCT ds_digests FROM counts WHERE ds_digests <> '') AS lists
        INNER JOIN algorithms ON CONCAT(',', lists.ds_digests, ',') LIKE algorithms.pattern
    ) AS members ON counts.ds_digests = members.ds_digests
    GROUP BY counts.source, counts.date, members.number
) AS parts
INNER JOIN (
    SELECT source, date, SUM(domains) AS domains FROM counts WHERE ds_digests <> '' GROUP BY source, date
) AS totals ON parts.source = totals.source AND parts.date = totals.date
ORDER BY source, date, digest
