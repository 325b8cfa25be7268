-- The algorithms of each list. A domain with keys of two algorithms counts for both.
SELECT lists.algorithms AS algorithms, algorithms.number AS number, algorithms.name AS name, algorithms.family AS family
FROM (SELECT DISTINCT algorithms FROM counts WHERE algorithms <> '') AS lists
INNER JOIN algorithms ON CONCAT(',', lists.algorithms, ',') LIKE algorithms.pattern
