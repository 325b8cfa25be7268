-- Domains by status. Shares are of the domains whose status is known.
SELECT
    source,
    date,
    domains,
    signed,
    dnskey_without_ds,
    ds_without_dnskey,
    unsigned,
    unknown,
    CAST(signed AS DOUBLE) / NULLIF(CAST(domains - unknown AS DOUBLE), 0.0) AS signed_share,
    CAST(dnskey_without_ds AS DOUBLE) / NULLIF(CAST(domains - unknown AS DOUBLE), 0.0) AS dnskey_without_ds_share
FROM (
    SELECT
        source,
        date,
        SUM(domains) AS domains,
        SUM(CASE WHEN status = 'signed' THEN domains ELSE 0 END) AS signed,
        SUM(CASE WHEN status = 'dnskey-without-ds' THEN domains ELSE 0 END) AS dnskey_without_ds,
        SUM(CASE WHEN status = 'ds-without-dnskey' THEN domains ELSE 0 END) AS ds_without_dnskey,
        SUM(CASE WHEN status = 'unsigned' THEN domains ELSE 0 END) AS unsigned,
        SUM(CASE WHEN status = 'unknown' THEN domains ELSE 0 END) AS unknown
    FROM counts
    GROUP BY source, date
) AS totals
ORDER BY source, date
