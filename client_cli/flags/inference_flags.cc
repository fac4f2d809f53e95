#include "client_cli/flags/inference_flags.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client_cli/flags/exit_code.h"
#include "engine/graph/attr.h"

namespace optfarm::client_cli {
namespace {

absl::StatusOr<tensorflow::DataType> ParseType(absl::string_view word) {
  int number = 0;
  if (!absl::SimpleAtoi(word, &number)) return graph::ParseDataType(word);
  if (number == tensorflow::DT_INVALID ||
      !tensorflow::DataType_IsValid(number)) {
    return absl::InvalidArgumentError(
        absl::StrCat(number, " is no number of a dtype; 1 is float, 4 uint8"));
  }
  return static_cast<tensorflow::DataType>(number);
}

}  // namespace

absl::StatusOr<transforms::GraphBorder> ParseGraphBorder(
    const std::string& inputs, const std::string& outputs,
    const std::string& types) {
  transforms::GraphBorder border;
  border.inputs = absl::StrSplit(inputs, ',', absl::SkipWhitespace());
  border.outputs = absl::StrSplit(outputs, ',', absl::SkipWhitespace());
  border.input_types.clear();
  for (absl::string_view word :
       absl::StrSplit(types, ',', absl::SkipWhitespace())) {
    const auto type = ParseType(absl::StripAsciiWhitespace(word));
    if (!type.ok()) {
      return UsageError(absl::StrCat("--placeholder_type_enum: ",
                                     std::string(type.status().message())));
    }
    border.input_types.push_back(*type);
  }
  return border;
}

}  // namespace optfarm::client_cli
