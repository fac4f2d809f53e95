// The table of micro-kernels that `optctl version --kernels` prints.

#ifndef OPTFARM_CLIENT_CLI_TABLES_MICRO_KERNEL_TABLE_H_
#define OPTFARM_CLIENT_CLI_TABLES_MICRO_KERNEL_TABLE_H_

#include "client_cli/tables/table.h"

namespace optfarm::client_cli {

// One row for each entry, with what this processor, as far as OPTFARM_CPU
// allows, does with it. No rows in a program without micro-kernels.
Table MakeMicroKernelTable();

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_MICRO_KERNEL_TABLE_H_
