// The header of W3C's Trace Context that says of which span a request is a
// child: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".

#ifndef OPTFARM_RPC_TRACE_PARENT_H_
#define OPTFARM_RPC_TRACE_PARENT_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::rpc {

// The header in HTTP and the metadata in gRPC.
inline constexpr char kTraceParentKey[] = "traceparent";
// How the tag of a job begins that keeps it.
inline constexpr char kTraceParentTag[] = "traceparent=";
// UNITS: characters. Later versions may add more, which nobody has to keep.
inline constexpr size_t kTraceParentLength = 55;

struct TraceParent {
  // UNITS: 16 and 8 bytes.
  std::string trace_id;
  std::string span_id;
  // The caller records its trace; nobody wants the parts of one that it drops.
  bool sampled = false;
};

// Reads the header as the recommendation says, later versions too.
// ERRORS: InvalidArgument that says how it must look.
absl::StatusOr<TraceParent> ParseTraceParent(absl::string_view text);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_TRACE_PARENT_H_
