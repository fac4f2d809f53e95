#include "engine/graph/tensor_name.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace optfarm::graph {

absl::StatusOr<TensorName> ParseTensorName(absl::string_view text) {
  absl::string_view rest = text;
  TensorName result;
  if (absl::ConsumePrefix(&rest, "^")) result.port = kControlPort;
  const size_t colon = rest.find(':');
  result.node = std::string(rest.substr(0, colon));
  if (result.node.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor name '", text, "' has no node name"));
  }
  if (colon == absl::string_view::npos || result.is_control()) return result;
  int32_t port = 0;
  if (!absl::SimpleAtoi(rest.substr(colon + 1), &port) || port < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor name '", text,
                     "' needs a number from 0 after the colon, as in '",
                     result.node, ":0'"));
  }
  result.port = port;
  return result;
}

absl::StatusOr<std::vector<TensorName>> ParseTensorNames(
    absl::string_view text) {
  std::vector<TensorName> names;
  for (absl::string_view piece :
       absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    OPTFARM_ASSIGN_OR_RETURN(
        TensorName name, ParseTensorName(absl::StripAsciiWhitespace(piece)));
    names.push_back(std::move(name));
  }
  return names;
}

std::string ToString(const TensorName& name) {
  return ToString(name.node, name.port);
}

std::string ToString(absl::string_view node, int port) {
  if (port == kControlPort) return absl::StrCat("^", node);
  if (port == 0) return std::string(node);
  return absl::StrCat(node, ":", port);
}

}  // namespace optfarm::graph
