// Print passes its first input on and writes the others as one line; PrintV2
// writes one text, which StringFormat makes of tensors.

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/text/summary.h"

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

absl::StatusOr<std::unique_ptr<Kernel>> MakePrintV2(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string end,
                           graph::GetStringOr(node, "end", "\n"));
  return MakeKernel([end](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& text = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(text, "input", tensorflow::DT_STRING));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(text, "input"));
    // A line has its end already.
    const bool is_line = end == "\n";
    context->Print(absl::StrCat(*text.data<std::string>(), is_line ? "" : end));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeStringFormat(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string form,
                           graph::GetStringOr(node, "template", "%s"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string placeholder,
                           graph::GetStringOr(node, "placeholder", "%s"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t summarize,
                           graph::GetIntOr(node, "summarize", 3));
  if (placeholder.empty()) {
    return absl::InvalidArgumentError("'placeholder' must not be empty");
  }
  const std::vector<std::string> parts = absl::StrSplit(form, placeholder);
  return MakeKernel([parts, summarize](KernelContext* context) -> absl::Status {
    const int places = static_cast<int>(parts.size()) - 1;
    if (context->num_inputs() != places) {
      return absl::InvalidArgumentError(
          absl::StrCat("'template' has ", places, " placeholders for ",
                       context->num_inputs(), " inputs; it needs as many"));
    }
    std::string text = parts[0];
    for (int i = 0; i < places; ++i) {
      absl::StrAppend(&text, SummarizeNested(context->input(i), summarize),
                      parts[static_cast<size_t>(i) + 1]);
    }
    context->SetOutput(0, Tensor::Scalar<std::string>(text));
    return absl::OkStatus();
  });
}

}  // namespace

void AddPrintKernels(KernelCatalog* catalog) {
  catalog->Add("Print", MakePrint, /*is_pure=*/false);
  catalog->Add("PrintV2", MakePrintV2, /*is_pure=*/false);
  catalog->Add("StringFormat", MakeStringFormat);
}

}  // namespace optfarm::runtime
