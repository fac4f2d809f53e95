// The attributes of ops that work on images and volumes: the order of the axes
// (data_format) and how a sliding window treats the edges (padding). Their
// texts are read here and nowhere else.

#ifndef OPTFARM_ENGINE_GRAPH_SPATIAL_ATTRS_H_
#define OPTFARM_ENGINE_GRAPH_SPATIAL_ATTRS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::graph {

// N: batch, C: channels, D: depth, H: rows, W: columns. kNchwVectC has blocks
// of four channels as its last axis.
enum class DataFormat : uint8_t { kNhwc, kNchw, kNdhwc, kNcdhw, kNchwVectC };

// Whether the channels come before the spatial axes.
constexpr bool HasChannelsFirst(DataFormat format) {
  return format != DataFormat::kNhwc && format != DataFormat::kNdhwc;
}

enum class Padding : uint8_t {
  kSame,      // As many positions as the stride allows; zeros at both edges.
  kValid,     // Only where the whole window lies inside.
  kExplicit,  // Attribute explicit_paddings says how much.
};

// ERRORS for both: InvalidArgument with the text when it is none of the above.
absl::StatusOr<DataFormat> ParseDataFormat(absl::string_view text);
absl::StatusOr<Padding> ParsePadding(absl::string_view text);

// The node's attribute data_format, NHWC without one.
// ERRORS: InvalidArgument when it is no string or not known.
absl::StatusOr<DataFormat> GetDataFormat(const tensorflow::NodeDef& node);
// The node's attribute padding.
// ERRORS: InvalidArgument when it is absent, no string or not known.
absl::StatusOr<Padding> GetPadding(const tensorflow::NodeDef& node);

// Whether the node's channels are the last axis of an image: data_format is
// NHWC, or absent. False for an attribute that cannot be read.
bool IsNhwc(const tensorflow::NodeDef& node);
// Whether padding is SAME or VALID.
bool IsSameOrValid(const tensorflow::NodeDef& node);

// Whether images are NCHW rather than NHWC, and volumes NCDHW rather than
// NDHWC, which an absent data_format means.
// ERRORS: InvalidArgument when it is no string; Unimplemented, naming it, when
// it is neither of the two.
absl::StatusOr<bool> IsNchw(const tensorflow::NodeDef& node);
absl::StatusOr<bool> IsNcdhw(const tensorflow::NodeDef& node);
// Whether padding is SAME rather than VALID.
// ERRORS: InvalidArgument when it is absent, no string or neither of the two.
absl::StatusOr<bool> IsSame(const tensorflow::NodeDef& node);

// The attributes as they are written, for messages: "NHWC" for an absent
// data_format, "" for an absent padding.
std::string DataFormatText(const tensorflow::NodeDef& node);
std::string PaddingText(const tensorflow::NodeDef& node);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_SPATIAL_ATTRS_H_
