// What a transform is: a named rewrite of a graph that describes itself once.
// Help text, the checking of recipes and the documentation are made from that
// description; catalog.h has the list of all.
//
// This header stays light (no graph, no runtime): the server includes it to
// check recipes.

#ifndef OPTFARM_ENGINE_TRANSFORMS_MACHINERY_TRANSFORM_H_
#define OPTFARM_ENGINE_TRANSFORMS_MACHINERY_TRANSFORM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/tensor_name.h"
#include "engine/transforms/machinery/transform_string.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::graph {
class Graph;
}  // namespace optfarm::graph

namespace optfarm::transforms {

enum class ParameterType {
  kString,
  kInt,
  kFloat,
  kBool,   // true, 1, false or 0
  kShape,  // "1,224,224,3"; -1 or ? for an unknown dimension
  kType,   // a dtype's name, such as float or quint8
};

// "STRING", "INT", ...
absl::string_view ParameterTypeName(ParameterType type);

struct ParameterDef {
  std::string name;
  ParameterType type = ParameterType::kString;
  // One sentence for the user, with units.
  std::string help;
  // As a user would write it; "" when there is none.
  std::string default_value = {};
  // May be given several times.
  bool repeated = false;
  bool required = false;
};

// The parameters of one step, checked against their definitions.
class TransformArguments {
 public:
  // ERRORS: InvalidArgument for a parameter that is not in `defs` (with the
  // nearest names), one that is given twice without being repeated, a required
  // one that is missing, or a value that is not of the type.
  static absl::StatusOr<TransformArguments> Parse(
      absl::Span<const ParameterDef> defs,
      absl::Span<const TransformParameter> given);

  // Whether the user gave the parameter.
  bool Has(absl::string_view name) const;

  // The value given, else the default.
  // REQUIRES: declared with that type, not repeated, given or with a default.
  std::string String(absl::string_view name) const;
  int64_t Int(absl::string_view name) const;
  float Float(absl::string_view name) const;
  bool Bool(absl::string_view name) const;
  graph::PartialShape Shape(absl::string_view name) const;
  tensorflow::DataType Type(absl::string_view name) const;

  // Values of a repeated parameter in the order given; empty when not given.
  std::vector<std::string> Strings(absl::string_view name) const;
  std::vector<graph::PartialShape> Shapes(absl::string_view name) const;
  std::vector<tensorflow::DataType> Types(absl::string_view name) const;

 private:
  const std::string& Only(absl::string_view name) const;

  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::map<std::string, std::string, std::less<>> defaults_;
};

// A place where a transform could have acted and did not.
struct SkippedMatch {
  std::string node;
  std::string reason;
};

// A node that got another name.
struct RenamedNode {
  std::string before;
  std::string after;

  friend bool operator==(const RenamedNode&, const RenamedNode&) = default;
};

// What a transform did.
struct TransformReport {
  int64_t nodes_changed = 0;
  std::vector<SkippedMatch> skipped;
  // What the user should know of, for instance NaN weights.
  std::vector<std::string> warnings;
  // In the order in which they were renamed.
  std::vector<RenamedNode> renamed;
  // Whether the new names say nothing, so that the user has to keep the pairs.
  bool has_hidden_names = false;
};

// Reads a variable's value from a checkpoint, by the checkpoint's path and the
// name under which the value was saved.
// ERRORS: NotFound when the checkpoint or the name is not there; others for
// files that cannot be read or are damaged.
using CheckpointReader = std::function<absl::StatusOr<tensorflow::TensorProto>(
    const std::string& checkpoint, const std::string& name)>;

// What a transform is given besides the graph.
// THREADS: one transform at a time.
class TransformContext {
 public:
  // Counters that live as long as one run of a pipeline, so that generated
  // names depend on the run alone.
  struct Counters {
    int64_t folded_constants = 0;
  };
  // OWNERSHIP: nothing is taken; all must outlive the context.
  TransformContext(const TransformArguments& arguments,
                   absl::Span<const graph::TensorName> inputs,
                   absl::Span<const graph::TensorName> outputs,
                   const std::string& base_folder,
                   const CheckpointReader& checkpoint_reader,
                   Counters* counters, TransformReport* report)
      : arguments_(arguments),
        inputs_(inputs),
        outputs_(outputs),
        base_folder_(base_folder),
        checkpoint_reader_(checkpoint_reader),
        counters_(counters),
        report_(report) {}

  const TransformArguments& arguments() const { return arguments_; }
  // The graph's declared inputs and outputs, as (node, port).
  absl::Span<const graph::TensorName> inputs() const { return inputs_; }
  absl::Span<const graph::TensorName> outputs() const { return outputs_; }
  // Whether any port of the node is a declared input, or output.
  bool IsInput(absl::string_view node) const;
  bool IsOutput(absl::string_view node) const;
  bool IsInputOrOutput(absl::string_view node) const {
    return IsInput(node) || IsOutput(node);
  }

  // The path of a file that a parameter names.
  // ERRORS: PermissionDenied for a path that leaves the base folder.
  absl::StatusOr<std::string> ResolveFile(absl::string_view path) const;

  // A variable's value; `checkpoint` is a path that a parameter gives.
  // ERRORS: those of ResolveFile and of the reader; Unimplemented when this
  // program gave none.
  absl::StatusOr<tensorflow::TensorProto> ReadVariable(
      absl::string_view checkpoint, const std::string& name) const;

  Counters* counters() { return counters_; }
  void CountChange(int64_t nodes = 1) { report_->nodes_changed += nodes; }
  void Skip(absl::string_view node, absl::string_view reason);
  void Warn(absl::string_view text);
  // No effect when the names are the same.
  void RecordRename(absl::string_view before, absl::string_view after);
  void HideNames() { report_->has_hidden_names = true; }

 private:
  const TransformArguments& arguments_;
  absl::Span<const graph::TensorName> inputs_;
  absl::Span<const graph::TensorName> outputs_;
  const std::string& base_folder_;
  const CheckpointReader& checkpoint_reader_;
  Counters* counters_;
  TransformReport* report_;
};

// Rewrites the graph in place. On error the graph keeps its invariants but may
// be half rewritten; the pipeline knows how to go back.
using TransformFunction = absl::Status (*)(graph::Graph*, TransformContext*);

struct TransformDef {
  std::string name;
  // One line, for lists.
  std::string summary;
  std::vector<ParameterDef> parameters;
  TransformFunction run = nullptr;
  // On error the graph is as it was, so that no copy is needed to ignore one.
  bool is_all_or_nothing = false;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_MACHINERY_TRANSFORM_H_
