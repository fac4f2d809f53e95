// Reading and writing a node's attributes by type, with errors that name node
// and attribute.

#ifndef OPTFARM_ENGINE_GRAPH_ATTR_H_
#define OPTFARM_ENGINE_GRAPH_ATTR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::graph {

// nullptr when absent.
const tensorflow::AttrValue* FindAttr(const tensorflow::NodeDef& node,
                                      absl::string_view name);

// Each returns the attribute's value.
// ERRORS: InvalidArgument when it is absent or of another type.
absl::StatusOr<int64_t> GetInt(const tensorflow::NodeDef& node,
                               absl::string_view name);
absl::StatusOr<float> GetFloat(const tensorflow::NodeDef& node,
                               absl::string_view name);
absl::StatusOr<bool> GetBool(const tensorflow::NodeDef& node,
                             absl::string_view name);
absl::StatusOr<std::string> GetString(const tensorflow::NodeDef& node,
                                      absl::string_view name);
absl::StatusOr<tensorflow::DataType> GetType(const tensorflow::NodeDef& node,
                                             absl::string_view name);
absl::StatusOr<std::vector<int64_t>> GetInts(const tensorflow::NodeDef& node,
                                             absl::string_view name);
absl::StatusOr<std::vector<float>> GetFloats(const tensorflow::NodeDef& node,
                                             absl::string_view name);
absl::StatusOr<std::vector<tensorflow::DataType>> GetTypes(
    const tensorflow::NodeDef& node, absl::string_view name);
// OWNERSHIP: the tensor belongs to the node.
absl::StatusOr<const tensorflow::TensorProto*> GetTensor(
    const tensorflow::NodeDef& node, absl::string_view name);

// The same with a value for an absent attribute; a wrong type is still an
// error.
absl::StatusOr<int64_t> GetIntOr(const tensorflow::NodeDef& node,
                                 absl::string_view name, int64_t absent);
absl::StatusOr<float> GetFloatOr(const tensorflow::NodeDef& node,
                                 absl::string_view name, float absent);
absl::StatusOr<bool> GetBoolOr(const tensorflow::NodeDef& node,
                               absl::string_view name, bool absent);
absl::StatusOr<std::string> GetStringOr(const tensorflow::NodeDef& node,
                                        absl::string_view name,
                                        absl::string_view absent);
absl::StatusOr<tensorflow::DataType> GetTypeOr(const tensorflow::NodeDef& node,
                                               absl::string_view name,
                                               tensorflow::DataType absent);
absl::StatusOr<std::vector<int64_t>> GetIntsOr(const tensorflow::NodeDef& node,
                                               absl::string_view name,
                                               std::vector<int64_t> absent);

void SetInt(tensorflow::NodeDef* node, absl::string_view name, int64_t value);
void SetFloat(tensorflow::NodeDef* node, absl::string_view name, float value);
void SetBool(tensorflow::NodeDef* node, absl::string_view name, bool value);
void SetString(tensorflow::NodeDef* node, absl::string_view name,
               absl::string_view value);
void SetType(tensorflow::NodeDef* node, absl::string_view name,
             tensorflow::DataType value);
void SetTypes(tensorflow::NodeDef* node, absl::string_view name,
              const std::vector<tensorflow::DataType>& value);
// Copies attribute `name` of `from`; no effect when it is absent.
void CopyAttr(const tensorflow::NodeDef& from, absl::string_view name,
              tensorflow::NodeDef* to);

// TensorFlow's lower-case name of a dtype ("float", "quint8", "float_ref"),
// and back. "float32", "float64" and "float16" are accepted too.
std::string DataTypeName(tensorflow::DataType dtype);
absl::StatusOr<tensorflow::DataType> ParseDataType(absl::string_view name);
// The dtype without the reference mark.
tensorflow::DataType BaseType(tensorflow::DataType dtype);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_ATTR_H_
