// The notation of op signatures in op rows, and its reader. op_defs.h is what
// the rest of the engine uses; only the table of rows and tests include this
// file.
//
//   (input: T, filter: T) -> (output: T)
//   | T: {floating}; strides: list(int); use_cudnn_on_gpu: bool = true;
//     padding: string {SAME, VALID, EXPLICIT};
//     late dilations: list(int) = [1, 1, 1, 1]
//
//   signature := "(" [args] ")" ["->" "(" [args] ")"] {flag}
//                ["|" attribute {";" attribute}]
//   names     := name {"," name}
//   args      := name ":" [number "*"] ["&"] type {"," ...}
//   flag      := "stateful" | "commutative" | "aggregate" | "uninitialized"
//   attribute := ["late"] name ":" (kind [values] | values)
//                [">=" integer] ["=" default]
//   kind      := "string" | "int" | "float" | "bool" | "type" | "shape" |
//                "tensor" | "func" | "list(" kind ")"
//   values    := "{" word {"," word} "}"
//
// Several names give ops that differ only in name. An argument's type is a data
// type, or an attribute of kind type or list(type);
// "&" makes it a reference, "N*" makes it N tensors. Values without a kind are
// types; a word among them may be a set: number, real, quantized, floating,
// complexfloating, index. Defaults are written plainly: true, 3, [1, 1], SAME,
// "a b", float, and for a shape ? (unknown rank) or [2, ?].
//
// "late" marks an attribute that came to an existing op after TensorFlow 1.4:
// an older runtime refuses a node that carries it, so it is not written into
// graphs when it has its default.

#ifndef OPTFARM_ENGINE_GRAPH_OPS_OP_SIGNATURES_H_
#define OPTFARM_ENGINE_GRAPH_OPS_OP_SIGNATURES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace optfarm::graph {

// Reads a signature into one OpDef for each name. InvalidArgument names the op
// and what was expected. A signature that refers to an attribute it does not
// declare is an error too. THREADS: any.
absl::StatusOr<std::vector<tensorflow::OpDef>> ParseOpSignature(
    absl::string_view names, absl::string_view signature);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_OPS_OP_SIGNATURES_H_
