// Regular expressions: RegexReplace and RegexFullMatch, and the Static forms
// whose pattern is an attribute. RE2 takes time in proportion to the text
// whatever the pattern is, and its memory is bounded, so patterns need not be
// trusted. A file of its own because the library may be left out
// (OPTFARM_EXTRA_OPS).

#include <re2/re2.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/text/text_function.h"

namespace optfarm::runtime {
namespace {

// Longer ones in a message help nobody.
constexpr size_t kShownPattern = 80;

absl::StatusOr<std::shared_ptr<const RE2>> Compile(const std::string& pattern) {
  auto compiled = std::make_shared<const RE2>(pattern, RE2::Quiet);
  if (compiled->ok()) return compiled;
  return absl::InvalidArgumentError(
      absl::StrCat("pattern '", pattern.substr(0, kShownPattern),
                   "' is no regular expression: ", compiled->error()));
}

absl::Status CheckRewrite(const RE2& pattern, const std::string& rewrite) {
  std::string problem;
  if (pattern.CheckRewriteString(rewrite, &problem)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("rewrite '", rewrite.substr(0, kShownPattern),
                   "' does not fit the pattern: ", problem));
}

absl::Status ReplaceAll(KernelContext* context, const RE2& pattern,
                        const std::string& rewrite, bool is_global) {
  OPTFARM_RETURN_IF_ERROR(CheckRewrite(pattern, rewrite));
  return ForEachText<std::string>(context,
                                  [&](const std::string& in, std::string* out) {
                                    *out = in;
                                    if (is_global) {
                                      RE2::GlobalReplace(out, pattern, rewrite);
                                    } else {
                                      RE2::Replace(out, pattern, rewrite);
                                    }
                                    return absl::OkStatus();
                                  });
}

absl::Status MatchAll(KernelContext* context, const RE2& pattern) {
  return ForEachText<bool>(context, [&](const std::string& in, bool* out) {
    *out = RE2::FullMatch(in, pattern);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> ReadText(const Tensor& tensor,
                                     absl::string_view name) {
  OPTFARM_RETURN_IF_ERROR(RequireText(tensor, name));
  OPTFARM_RETURN_IF_ERROR(RequireOneElement(tensor, name));
  return *tensor.data<std::string>();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReplace(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool is_global,
                           graph::GetBoolOr(node, "replace_global", true));
  return MakeKernel([is_global](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                             ReadText(context->input(1), "pattern"));
    OPTFARM_ASSIGN_OR_RETURN(const std::string rewrite,
                             ReadText(context->input(2), "rewrite"));
    OPTFARM_ASSIGN_OR_RETURN(const auto pattern, Compile(text));
    return ReplaceAll(context, *pattern, rewrite, is_global);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeStaticReplace(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool is_global,
                           graph::GetBoolOr(node, "replace_global", true));
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           graph::GetString(node, "pattern"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string rewrite,
                           graph::GetString(node, "rewrite"));
  OPTFARM_ASSIGN_OR_RETURN(const auto pattern, Compile(text));
  OPTFARM_RETURN_IF_ERROR(CheckRewrite(*pattern, rewrite));
  return MakeKernel(
      [is_global, pattern, rewrite](KernelContext* context) -> absl::Status {
        OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
        return ReplaceAll(context, *pattern, rewrite, is_global);
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFullMatch(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                             ReadText(context->input(1), "pattern"));
    OPTFARM_ASSIGN_OR_RETURN(const auto pattern, Compile(text));
    return MatchAll(context, *pattern);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeStaticFullMatch(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           graph::GetString(node, "pattern"));
  OPTFARM_ASSIGN_OR_RETURN(const auto pattern, Compile(text));
  return MakeKernel([pattern](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    return MatchAll(context, *pattern);
  });
}

}  // namespace

void AddStringPatternKernels(KernelCatalog* catalog) {
  catalog->Add("RegexReplace", MakeReplace);
  catalog->Add("StaticRegexReplace", MakeStaticReplace);
  catalog->Add("RegexFullMatch", MakeFullMatch);
  catalog->Add("StaticRegexFullMatch", MakeStaticFullMatch);
}

}  // namespace optfarm::runtime
