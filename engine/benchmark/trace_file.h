// Traces of runs as a file that Chrome's tracing page (chrome://tracing) and
// Perfetto open: one bar for each node, one row of bars for all runs one after
// the other.

#ifndef OPTFARM_ENGINE_BENCHMARK_TRACE_FILE_H_
#define OPTFARM_ENGINE_BENCHMARK_TRACE_FILE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/runtime/session/session.h"

namespace optfarm::benchmark {

// The Trace Event Format's JSON object. `name` is what the page calls the
// process: the model's file. A bar carries op, bytes and the outputs' dtypes
// and shapes.
std::string TraceFileJson(absl::Span<const runtime::RunTrace> traces,
                          absl::string_view name);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_TRACE_FILE_H_
