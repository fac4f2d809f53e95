// What the bytes of a graph's file are: names, inputs, values of constants, and
// what ops and attributes take.

#ifndef OPTFARM_CLIENT_CLI_TABLES_GRAPH_BYTES_H_
#define OPTFARM_CLIENT_CLI_TABLES_GRAPH_BYTES_H_

#include "client_cli/tables/table.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::client_cli {

// A row for each op, the one with most bytes first; functions have one row, and
// the last row, "all", is the file. UNITS: bytes of the binary form.
Table GraphBytes(const tensorflow::GraphDef& graph);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_GRAPH_BYTES_H_
