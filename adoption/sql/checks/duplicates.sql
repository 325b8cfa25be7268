-- Snapshots that have a domain more than once, with the number of such domains and the first of them.
SELECT source, date, COUNT(*) AS domains, MIN(domain) AS example
FROM (
    SELECT source, date, domain
    FROM snapshots
    GROUP BY source, date, domain
    HAVING COUNT(*) > 1
) AS repeated
GROUP BY source, date
ORDER BY source, date
