#include "storage/postgres/catalog.h"

namespace optfarm::storage {
namespace {

constexpr SqlCatalog kCatalog = {
    .tables =
        "SELECT CAST(relname AS TEXT) FROM pg_class"
        " WHERE relkind IN ('r', 'p') AND NOT relispartition"
        " AND relnamespace = CAST(current_schema() AS regnamespace)",
    .columns =
        "SELECT CAST(a.attname AS TEXT), CASE format_type(a.atttypid, NULL)"
        "  WHEN 'bigint' THEN 'i' WHEN 'double precision' THEN 'd'"
        "  WHEN 'text' THEN 't' WHEN 'bytea' THEN 'b' ELSE '?' END,"
        " COALESCE((SELECT k.place FROM pg_index AS i,"
        "  unnest(CAST(i.indkey AS int2[])) WITH ORDINALITY"
        "   AS k(attnum, place)"
        "  WHERE i.indrelid = a.attrelid AND i.indisprimary"
        "  AND k.attnum = a.attnum), 0)"
        " FROM pg_attribute AS a WHERE a.attrelid = CAST(?1 AS regclass)"
        " AND a.attnum > 0 AND NOT a.attisdropped"
        " ORDER BY CAST(a.attname AS TEXT) COLLATE \"C\"",
    .last_number =
        "SELECT last_value FROM pg_sequences WHERE schemaname ="
        " current_schema() AND format('%I.%I', schemaname, sequencename) ="
        " pg_get_serial_sequence(?1, ?2)",
    // Of a column without numbers of its own: NULL, and nothing is done.
    .set_last_number =
        "SELECT setval(CAST(pg_get_serial_sequence(?1, ?2) AS regclass), ?3)",
    .set_last_number_too = nullptr,
};

}  // namespace

const SqlCatalog& PostgresCatalog() { return kCatalog; }

}  // namespace optfarm::storage
