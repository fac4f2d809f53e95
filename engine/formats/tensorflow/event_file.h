// Event files, which TensorBoard reads: records of Event messages, each with
// its length and checksums.
//
//   file   := record*
//   record := length (uint64) masked-crc(length) bytes[length]
//             masked-crc(bytes)          all numbers little-endian, CRCs uint32
//
// The first record names the version, "brain.Event:2".

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_EVENT_FILE_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_EVENT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// The bytes of an event file with one graph, written at `now`.
// ERRORS: ResourceExhausted when the graph is too large for one message.
absl::StatusOr<std::string> GraphToEventFile(const tensorflow::GraphDef& graph,
                                             absl::Time now);

// The name under which TensorBoard finds an event file of `now` from `host`.
std::string EventFileName(absl::Time now, const std::string& host);

// The graph as it is in a program that imported it: every name begins with
// `scope`/, in inputs and in "loc:@" constraints too.
tensorflow::GraphDef ImportedGraph(tensorflow::GraphDef graph,
                                   const std::string& scope);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_EVENT_FILE_H_
