#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/graph/op_defs.h"
#include "engine/runtime/core/resource.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/reference/catalog.h"

namespace optfarm::runtime {
namespace {

absl::Status CheckInputCount(const tensorflow::NodeDef& node, size_t given) {
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) return absl::OkStatus();
  // A node alone may lack the attribute that counts its inputs.
  const absl::StatusOr<int> wanted = graph::InputCount(*def, node);
  if (!wanted.ok() || *wanted == static_cast<int>(given)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the op takes ", *wanted, " inputs, but got ", given));
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> EvaluateNode(
    const tensorflow::NodeDef& node, absl::Span<const Tensor> inputs,
    int num_outputs) {
  const std::string what =
      absl::StrCat("node '", node.name(), "' (op ", node.op(), ")");
  const KernelEntry* entry = AllKernels().Find(node.op());
  if (entry == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(what, ": the runtime has no kernel for this op"));
  }
  const absl::Status arity = CheckInputCount(node, inputs.size());
  if (!arity.ok()) return Annotate(arity, what);
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = entry->Make(node);
  if (!kernel.ok()) return Annotate(kernel.status(), what);
  static ThreadPool* const pool = new ThreadPool(1);
  static const auto* const print =
      new std::function<void(absl::string_view)>([](absl::string_view line) {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()),
                     line.data());
      });
  std::vector<Tensor> in(inputs.begin(), inputs.end());
  std::vector<Tensor> out(num_outputs);
  ResourceContainer resources;
  KernelContext context(absl::MakeSpan(in), absl::MakeSpan(out),
                        KernelEnvironment{pool, print, &resources});
  const absl::Status status = ComputeOrLeave(**kernel, &context);
  if (!status.ok()) return Annotate(status, what);
  return out;
}

}  // namespace optfarm::runtime
