// What each op takes, gives and can be configured with: the signatures in our
// table of ops (ops/op_row.h), and the questions that are answered from them
// (types of a node's inputs and outputs, default attributes).
//
// THREADS: everything here may be called from any thread; a signature is read
// at its first use and never changes.

#ifndef OPTFARM_ENGINE_GRAPH_OP_DEFS_H_
#define OPTFARM_ENGINE_GRAPH_OP_DEFS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::graph {

// The most tensors one node may take or give. A larger number in a model file
// is taken for damage, not for a request to reserve memory.
inline constexpr int64_t kMaxNodeArity = 65536;

// Signature of the op, or null when we do not know it. OWNERSHIP: the table's,
// valid until the program ends.
const tensorflow::OpDef* FindOpDef(absl::string_view op);

// Names of all known ops, sorted. The names live until the program ends.
std::vector<absl::string_view> AllOpNames();

// The attribute's declaration, or null. OWNERSHIP: op_def's.
const tensorflow::OpDef::AttrDef* FindAttrDef(const tensorflow::OpDef& op_def,
                                              absl::string_view name);

// Whether the attribute came to its op after TensorFlow 1.4. A runtime older
// than that refuses a node that carries it, even with the default value.
bool IsLateAttribute(const tensorflow::OpDef::AttrDef& attr);

// The node's own value of the attribute, else the signature's default, else
// null. OWNERSHIP: node's or op_def's.
const tensorflow::AttrValue* FindAttrOrDefault(const tensorflow::OpDef& op_def,
                                               const tensorflow::NodeDef& node,
                                               absl::string_view name);

// Types of the node's data outputs (one per port) and data inputs. Outputs of
// variable ops are reference types (DT_FLOAT_REF, ...); an input is a reference
// type only where the signature demands one. A missing attribute counts with
// its default. InvalidArgument, naming node and attribute, when an attribute
// that is needed is absent without default, has the wrong kind, is negative, or
// would make more than kMaxNodeArity tensors.
absl::StatusOr<std::vector<tensorflow::DataType>> OutputTypes(
    const tensorflow::OpDef& op_def, const tensorflow::NodeDef& node);
absl::StatusOr<std::vector<tensorflow::DataType>> InputTypes(
    const tensorflow::OpDef& op_def, const tensorflow::NodeDef& node);

// Numbers of data outputs and inputs; errors as above. Types are not needed
// for it, so a node without its type attributes still has a count.
absl::StatusOr<int> OutputCount(const tensorflow::OpDef& op_def,
                                const tensorflow::NodeDef& node);
absl::StatusOr<int> InputCount(const tensorflow::OpDef& op_def,
                               const tensorflow::NodeDef& node);

// A run of ports that one argument of the signature covers.
struct PortRange {
  int begin = 0;  // First port.
  int end = 0;    // One past the last.
};

// Ports of the named input or output argument, for ops whose arguments are
// lists. NotFound when the signature has no such argument; other errors as
// above.
absl::StatusOr<PortRange> InputPorts(const tensorflow::OpDef& op_def,
                                     const tensorflow::NodeDef& node,
                                     absl::string_view argument);
absl::StatusOr<PortRange> OutputPorts(const tensorflow::OpDef& op_def,
                                      const tensorflow::NodeDef& node,
                                      absl::string_view argument);

// Which defaults ApplyDefaultAttributes writes.
enum class DefaultAttributes {
  kUnderstoodByAll,  // Leaves late attributes out (see IsLateAttribute).
  kAll,
};

// Adds each attribute that has a default and that the node lacks. Attributes
// the node has are not touched, not even wrong ones. InvalidArgument when the
// node's op is not op_def's.
absl::Status ApplyDefaultAttributes(
    const tensorflow::OpDef& op_def, tensorflow::NodeDef* node,
    DefaultAttributes which = DefaultAttributes::kUnderstoodByAll);

// Whether two values of the op may differ for the same inputs, or running it
// has an effect: such a node is never merged, folded or dropped as unused.
// Unknown ops count as stateful.
bool IsStateful(absl::string_view op);

// Whether the type is a reference (DT_FLOAT_REF, ...); BaseType() of attr.h
// takes the mark away.
bool IsRefType(tensorflow::DataType type);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_OP_DEFS_H_
