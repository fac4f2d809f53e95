#include "engine/formats/onnx/model_context.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optfarm::formats {
namespace {

constexpr int64_t kMostNodes = 1'000'000;
constexpr int64_t kMostGrowth = 64;
// UNITS: bytes.
constexpr int64_t kSmallFile = 1 << 20;
// A refusal does not list more than this.
constexpr size_t kMostReasons = 30;

std::string FunctionKey(absl::string_view domain, absl::string_view name,
                        absl::string_view overload) {
  return absl::StrCat(OnnxDomain(domain), ":", name, ":", overload);
}

}  // namespace

std::string OnnxDomain(absl::string_view domain) {
  return domain == "ai.onnx" ? "" : std::string(domain);
}

absl::Status ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
    OnnxOpsets* opsets) {
  for (const onnx::OperatorSetIdProto& import : imports) {
    const std::string domain = OnnxDomain(import.domain());
    if (import.version() < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it is written for version ", import.version(),
          " of the operators of '", domain, "'; versions begin with 1"));
    }
    if (domain.empty() && import.version() > kNewestOnnxOpset) {
      return absl::UnimplementedError(
          absl::StrCat("it is written for opset ", import.version(),
                       "; opsets 1 to ", kNewestOnnxOpset, " are supported"));
    }
    (*opsets)[domain] =
        static_cast<int>(std::min<int64_t>(import.version(), 1 << 20));
  }
  return absl::OkStatus();
}

OnnxModelContext::OnnxModelContext(const onnx::ModelProto& model,
                                   std::string folder)
    : folder_(std::move(folder)),
      constant_bytes_left_(
          kMostGrowth *
          (static_cast<int64_t>(model.ByteSizeLong()) + kSmallFile)) {
  for (const onnx::FunctionProto& function : model.functions()) {
    functions_[FunctionKey(function.domain(), function.name(),
                           function.overload())] = &function;
  }
}

const onnx::FunctionProto* OnnxModelContext::FindFunction(
    const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(
      FunctionKey(node.domain(), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

std::string OnnxModelContext::NewFunctionName(absl::string_view prefix) {
  return absl::StrCat(prefix, "_", library_.function_size());
}

bool OnnxModelContext::CountNode() {
  if (++nodes_ <= kMostNodes) return true;
  if (nodes_ == kMostNodes + 1) {
    AddReason(absl::ResourceExhaustedError(
        absl::StrCat("it has more than ", kMostNodes,
                     " nodes, those of functions counted "
                     "once for each call")));
  }
  return false;
}

absl::Status OnnxModelContext::TakeConstantBytes(int64_t bytes) {
  if (bytes > constant_bytes_left_) {
    return absl::ResourceExhaustedError(
        "its constants take far more memory than the file has bytes");
  }
  constant_bytes_left_ -= bytes;
  return absl::OkStatus();
}

void OnnxModelContext::AddReason(const absl::Status& reason) {
  is_invalid_ = is_invalid_ || absl::IsInvalidArgument(reason);
  reasons_.emplace_back(reason.message());
}

void OnnxModelContext::AddUnknownOperator(const std::string& domain,
                                          const std::string& op, int opset) {
  ++unknown_[absl::StrCat(domain.empty() ? "ai.onnx" : domain, ".", op,
                          " of version ", opset)];
}

absl::Status OnnxModelContext::Refusal(absl::string_view name) const {
  std::vector<std::string> lines;
  for (const auto& [op, count] : unknown_) {
    lines.push_back(absl::StrCat("  operator ", op, ", which ", count,
                                 count == 1 ? " node has" : " nodes have",
                                 ", is not supported"));
  }
  for (const std::string& reason : reasons_) {
    lines.push_back(absl::StrCat("  ", reason));
  }
  const size_t all = lines.size();
  if (all > kMostReasons) {
    lines.resize(kMostReasons);
    lines.push_back(absl::StrCat("  and ", all - kMostReasons, " more"));
  }
  const std::string text =
      absl::StrCat(name, " is an ONNX model that cannot be read:\n",
                   absl::StrJoin(lines, "\n"));
  return is_invalid_ ? absl::InvalidArgumentError(text)
                     : absl::UnimplementedError(text);
}

}  // namespace optfarm::formats
