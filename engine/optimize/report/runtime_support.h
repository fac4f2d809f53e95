// The part of a report that says which runtimes run the result.

#ifndef OPTFARM_ENGINE_OPTIMIZE_REPORT_RUNTIME_SUPPORT_H_
#define OPTFARM_ENGINE_OPTIMIZE_REPORT_RUNTIME_SUPPORT_H_

#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// Adds an entry for each runtime. Those that read files of another format are
// left out where the graph's own file has more than 256 MB, since such a file
// is made to find out. `io` may be that of the graph before it was optimized:
// names, types and shapes count. Nothing is added where it does not fit.
void AddRuntimeSupport(const graph::Graph& graph, const graph::GraphIo& io,
                       v1::Report* report);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_REPORT_RUNTIME_SUPPORT_H_
