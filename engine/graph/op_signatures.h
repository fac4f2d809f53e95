// The op signatures of ours as text, one function per family of ops, and the
// reader of that text. op_defs.h is what the rest of the engine uses; only it
// and its tests include this file.
//
// The text is a list of entries. An entry starts in column 0; lines that start
// with a space continue it; a line that starts with # is a comment.
//
//   Conv2D(input: T, filter: T) -> (output: T)
//     | T: {floating}; strides: list(int); use_cudnn_on_gpu: bool = true;
//       padding: string {SAME, VALID, EXPLICIT}; late dilations: list(int)
//       = [1, 1, 1, 1]
//
//   entry     := name {"," name} "(" [args] ")" ["->" "(" [args] ")"] {flag}
//                ["|" attribute {";" attribute}]
//   args      := name ":" [number "*"] ["&"] type {"," ...}
//   flag      := "stateful" | "commutative" | "aggregate" | "uninitialized"
//   attribute := ["late"] name ":" (kind [values] | values)
//                [">=" integer] ["=" default]
//   kind      := "string" | "int" | "float" | "bool" | "type" | "shape" |
//                "tensor" | "func" | "list(" kind ")"
//   values    := "{" word {"," word} "}"
//
// Several names at the head of an entry give ops that differ only in name. An
// argument's type is a data type, or an attribute of kind type or list(type);
// "&" makes it a reference, "N*" makes it N tensors. Values without a kind are
// types; a word among them may be a set: number, real, quantized, floating,
// complexfloating, index. Defaults are written plainly: true, 3, [1, 1], SAME,
// "a b", float, and for a shape ? (unknown rank) or [2, ?].
//
// "late" marks an attribute that came to an existing op after TensorFlow 1.4:
// an older runtime refuses a node that carries it, so it is not written into
// graphs when it has its default.

#ifndef OPTFARM_ENGINE_GRAPH_OP_SIGNATURES_H_
#define OPTFARM_ENGINE_GRAPH_OP_SIGNATURES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace optfarm::graph {

// The text of one family each. THREADS: any; the text is constant.
absl::string_view ArrayOpSignatures();
absl::string_view ControlFlowOpSignatures();
absl::string_view ImageOpSignatures();
absl::string_view LinearAlgebraOpSignatures();
absl::string_view MathOpSignatures();
absl::string_view NnOpSignatures();
absl::string_view QuantizedOpSignatures();
absl::string_view RandomOpSignatures();
absl::string_view StateOpSignatures();
absl::string_view StringOpSignatures();

// Reads signature text into OpDefs, in the order of the text. InvalidArgument
// names the entry and what was expected. A signature that refers to an
// attribute it does not declare is an error too.
absl::StatusOr<std::vector<tensorflow::OpDef>> ParseOpSignatures(
    absl::string_view text);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_OP_SIGNATURES_H_
