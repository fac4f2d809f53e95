// How an SQLite file is asked what is in it.

#ifndef OPTFARM_STORAGE_SQLITE_CATALOG_H_
#define OPTFARM_STORAGE_SQLITE_CATALOG_H_

#include "storage/sql/table_copy.h"

namespace optfarm::storage {

const SqlCatalog& SqliteCatalog();

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_CATALOG_H_
