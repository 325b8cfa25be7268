-- The numbers of DNSSEC algorithms (IANA registry "DNS Security Algorithm Numbers") with names; a number without an
-- assignment has the name NULL. `pattern` finds a number in a list of numbers between commas.
WITH digits AS (
    SELECT digit FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS d (digit)
),
numbers AS (
    SELECT hundreds.digit * 100 + tens.digit * 10 + units.digit AS number
    FROM digits AS hundreds CROSS JOIN digits AS tens CROSS JOIN digits AS units
    WHERE hundreds.digit * 100 + tens.digit * 10 + units.digit < 256
),
names AS (
    SELECT number, name, family
    FROM (VALUES
        (1, 'RSAMD5', 'RSA/MD5'),
        (3, 'DSA', 'DSA'),
        (5, 'RSASHA1', 'RSA/SHA-1'),
        (6, 'DSA-NSEC3-SHA1', 'DSA'),
        (7, 'RSASHA1-NSEC3-SHA1', 'RSA/SHA-1'),
        (8, 'RSASHA256', 'RSA/SHA-2'),
        (10, 'RSASHA512', 'RSA/SHA-2'),
        (12, 'ECC-GOST', 'GOST'),
        (13, 'ECDSAP256SHA256', 'ECC'),
        (14, 'ECDSAP384SHA384', 'ECC'),
        (15, 'ED25519', 'ECC'),
        (16, 'ED448', 'ECC'),
        (17, 'SM2SM3', 'SM2'),
        (23, 'ECC-GOST12', 'GOST'),
        (252, 'INDIRECT', 'private'),
        (253, 'PRIVATEDNS', 'private'),
        (254, 'PRIVATEOID', 'private')
    ) AS n (number, name, family)
)
SELECT
    numbers.number AS number,
    names.name AS name,
    COALESCE(names.family, 'unknown') AS family,
    CONCAT('%,', CAST(numbers.number AS STRING), ',%') AS pattern
FROM numbers LEFT JOIN names ON numbers.number = names.number
