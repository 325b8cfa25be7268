-- The number of domains with equal properties in each snapshot: the only query over all rows.
SELECT
    source,
    date,
    status,
    algorithms,
    ds_digests,
    denial,
    nsec3_iterations,
    nsec3_salt_octets,
    nsec3_opt_out,
    operator,
    rank_up_to,
    COUNT(*) AS domains
FROM classified
GROUP BY
    source,
    date,
    status,
    algorithms,
    ds_digests,
    denial,
    nsec3_iterations,
    nsec3_salt_octets,
    nsec3_opt_out,
    operator,
    rank_up_to
