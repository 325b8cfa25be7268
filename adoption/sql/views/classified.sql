-- The status of each domain in each snapshot. A validator finds a chain of trust only with a DS record in the parent zone and a
-- DNSKEY record in the zone (RFC 4035 section 5). A list that is NULL was not measured; an empty list has no records.
SELECT
    source,
    date,
    operator,
    denial,
    nsec3_iterations,
    nsec3_opt_out,
    CAST(LENGTH(nsec3_salt) / 2 AS INT) AS nsec3_salt_octets,
    ds_digests,
    CASE
        WHEN ds_algorithms <> '' AND dnskey_algorithms = '' THEN 'ds-without-dnskey'
        WHEN ds_algorithms <> '' THEN 'signed'
        WHEN dnskey_algorithms <> '' AND ds_algorithms = '' THEN 'dnskey-without-ds'
        WHEN ds_algorithms = '' THEN 'unsigned'
        WHEN dnskey_algorithms = '' THEN 'unsigned'
        ELSE 'unknown'
    END AS status,
    COALESCE(dnskey_algorithms, ds_algorithms) AS algorithms,
    CASE
        WHEN rank IS NULL THEN NULL
        WHEN rank <= 1000 THEN 1000
        WHEN rank <= 10000 THEN 10000
        WHEN rank <= 100000 THEN 100000
        WHEN rank <= 1000000 THEN 1000000
        ELSE 2147483647
    END AS rank_up_to
FROM snapshots
