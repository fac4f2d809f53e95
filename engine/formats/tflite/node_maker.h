// Nodes of the graph that a reader makes. Types and counts among a node's
// attributes follow from its inputs by the op's signature, so that a lowering
// says the op, its inputs and what it chose.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_NODE_MAKER_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_NODE_MAKER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/formats/tflite/tensor_facts.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::tflite {

// An output of a node.
struct Value {
  std::string node;
  int port = 0;
  tensorflow::DataType type = tensorflow::DT_INVALID;

  bool empty() const { return node.empty(); }
  // "node", "node:1".
  std::string Name() const;
};

// Bounds on what one file may become, shared by all of its subgraphs.
struct Budget {
  int64_t constant_bytes = 0;
  int64_t nodes = 0;
};

using SetAttributes = absl::FunctionRef<void(tensorflow::NodeDef*)>;

// The first error is kept, and everything after it does nothing: ask status().
class NodeMaker {
 public:
  explicit NodeMaker(Budget* budget) : budget_(*budget) {}

  // Adds a node and returns its first output. A name that is taken gets a
  // number.
  Value Add(
      absl::string_view op, absl::string_view name,
      absl::Span<const Value> inputs,
      SetAttributes attributes = [](tensorflow::NodeDef*) {});
  // Another output of the node.
  Value Port(const Value& value, int port);
  Value AddConst(absl::string_view name, const Constant& constant);

  // Gives the node that made `value` another name; nobody may read it yet but
  // nodes added after it. Returns the value under its new name.
  Value Rename(const Value& value, absl::string_view name);
  // The node that makes a value. REQUIRES: a value of this maker.
  tensorflow::NodeDef* NodeOf(const Value& value);
  void AddControl(const Value& value, const Value& before);

  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status);
  // In the order in which they were added; those that nothing needs are left
  // out. `roots` are names of nodes that are needed.
  std::vector<tensorflow::NodeDef> Take(absl::Span<const std::string> roots);

 private:
  std::string FreeName(absl::string_view name);
  absl::Status SetTypes(absl::Span<const Value> inputs,
                        tensorflow::NodeDef* node, Value* output) const;

  Budget& budget_;
  absl::Status status_;
  std::deque<tensorflow::NodeDef> nodes_;
  absl::flat_hash_map<std::string, int> index_of_;
  absl::flat_hash_map<std::string, int> next_number_;
};

// Attributes that attr.h has no function for.
void SetInts(tensorflow::NodeDef* node, absl::string_view name,
             absl::Span<const int64_t> values);
void SetShape(tensorflow::NodeDef* node, absl::string_view name,
              absl::Span<const int64_t> dims);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_NODE_MAKER_H_
