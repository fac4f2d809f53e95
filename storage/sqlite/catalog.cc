#include "storage/sqlite/catalog.h"

namespace optfarm::storage {
namespace {

constexpr SqlCatalog kCatalog = {
    .tables =
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    .columns =
        "SELECT name, CASE type WHEN 'INTEGER' THEN 'i' WHEN 'REAL' THEN 'd'"
        " WHEN 'TEXT' THEN 't' WHEN 'BLOB' THEN 'b' ELSE '?' END, pk"
        " FROM pragma_table_info(?1) ORDER BY name",
    // Only of those with AUTOINCREMENT. ?2 is not needed.
    .last_number =
        "SELECT seq FROM sqlite_sequence WHERE name = ?1 AND ?2 IS NOT NULL",
    .set_last_number =
        "UPDATE sqlite_sequence SET seq = ?3 WHERE name = ?1 AND"
        " ?2 IS NOT NULL",
    // A table that had rows, and has none.
    .set_last_number_too =
        "INSERT INTO sqlite_sequence (name, seq) SELECT ?1, ?3"
        " WHERE ?2 IS NOT NULL AND EXISTS (SELECT 1 FROM sqlite_schema"
        "  WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%') AND NOT EXISTS"
        " (SELECT 1 FROM sqlite_sequence WHERE name = ?1)",
};

}  // namespace

const SqlCatalog& SqliteCatalog() { return kCatalog; }

}  // namespace optfarm::storage
