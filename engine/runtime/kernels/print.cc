// Print: passes its first input on and writes the others as one line.

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/kernels/families.h"
#include "engine/runtime/kernels/summary.h"

namespace optfarm::runtime {
namespace {

class Print final : public Kernel {
 public:
  Print(std::string message, int64_t first_n, int64_t summarize)
      : message_(std::move(message)),
        first_n_(first_n),
        summarize_(summarize) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputsAtLeast(*context, 1));
    context->SetOutput(0, context->input(0));
    if (first_n_ >= 0 && printed_.fetch_add(1) >= first_n_) {
      return absl::OkStatus();
    }
    std::string line = message_;
    for (int i = 1; i < context->num_inputs(); ++i) {
      absl::StrAppend(&line, "[", Summarize(context->input(i), summarize_),
                      "]");
    }
    context->Print(line);
    return absl::OkStatus();
  }

 private:
  std::string message_;
  // Lines to write; all when negative.
  int64_t first_n_;
  int64_t summarize_;
  mutable std::atomic<int64_t> printed_{0};
};

absl::StatusOr<std::unique_ptr<Kernel>> MakePrint(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(std::string message,
                           graph::GetStringOr(node, "message", ""));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t first_n,
                           graph::GetIntOr(node, "first_n", -1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t summarize,
                           graph::GetIntOr(node, "summarize", 3));
  return std::make_unique<Print>(std::move(message), first_n, summarize);
}

}  // namespace

void AddPrintKernels(KernelCatalog* catalog) {
  catalog->Add("Print", MakePrint, /*is_pure=*/false);
}

}  // namespace optfarm::runtime
