#include "rpc/message_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/number_text.h"

namespace optfarm::rpc {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::FileDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

// Deeper ones are protobuf's, which writes none.
constexpr int kDeepest = 60;

// In place of the index of a repeated field's value.
constexpr int kTheOne = -1;

absl::StatusOr<std::string> ByProtobuf(const Message& message,
                                       JsonLines lines) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = lines == JsonLines::kMany;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &json, options);
  if (status.ok()) return json;
  return absl::InternalError(
      absl::StrCat("writing ", message.GetTypeName(),
                   " as JSON: ", std::string(status.message())));
}

// Stands for itself in a JSON string.
bool IsPlain(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<' &&
           c != '>';
  });
}

// Of fields that may be absent. Protobuf makes an object's fields ready in the
// order of their declaration and appends, by number, values that it has made no
// place for.
bool ComesLast(const FieldDescriptor& field) {
  const Descriptor* message = field.message_type();
  return message == nullptr || message->file()->package() == "google.protobuf";
}

bool IsSet(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

// Appends messages. Where something is not written here a call returns false,
// and what was appended is of no use.
class Writer {
 public:
  Writer(JsonLines lines, std::string& out)
      : many_lines_(lines == JsonLines::kMany), out_(out) {}

  bool Append(const Message& message);

 private:
  bool AppendWellKnown(const Message& message);
  bool AppendNamed(const Message& message, const FieldDescriptor& field,
                   bool first);
  bool AppendTime(const google::protobuf::Timestamp& time);
  bool AppendField(const Message& message, const FieldDescriptor& field);
  bool AppendList(const Message& message, const FieldDescriptor& field);
  // One of a repeated field, or of another with kTheOne.
  bool AppendValue(const Message& message, const FieldDescriptor& field,
                   int index);
  template <typename Number>
  void AppendReal(Number number);
  bool AppendText(const std::string& text);
  void AppendEnum(const FieldDescriptor& field, int number);

  // One level deeper.
  void Open(char bracket);
  // Before each but the first thing of a level, and before the first.
  void Separate(bool first);
  void Close(char bracket, bool is_empty);
  void NewLine();

  const bool many_lines_;
  std::string& out_;
  int level_ = 0;
};

void Writer::Open(char bracket) {
  out_.push_back(bracket);
  ++level_;
}

void Writer::Separate(bool first) {
  if (!first) out_.push_back(',');
  NewLine();
}

void Writer::Close(char bracket, bool is_empty) {
  --level_;
  if (!is_empty) NewLine();
  out_.push_back(bracket);
}

void Writer::NewLine() {
  if (!many_lines_) return;
  out_.push_back('\n');
  out_.append(static_cast<size_t>(level_), ' ');
}

bool Writer::AppendNamed(const Message& message, const FieldDescriptor& field,
                         bool first) {
  Separate(first);
  out_.push_back('"');
  out_.append(field.name());
  out_.append(many_lines_ ? "\": " : "\":");
  return AppendField(message, field);
}

bool Writer::Append(const Message& message) {
  const Descriptor& type = *message.GetDescriptor();
  if (level_ > kDeepest ||
      type.file()->syntax() != FileDescriptor::SYNTAX_PROTO3)
    return false;
  if (type.file()->package() == "google.protobuf") {
    return AppendWellKnown(message);
  }
  absl::InlinedVector<const FieldDescriptor*, 8> last;
  bool first = true;
  Open('{');
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const bool has_presence = !field.is_repeated() && field.has_presence();
    // Of these only what is set is written.
    if ((has_presence || field.options().deprecated()) &&
        !IsSet(message, field)) {
      continue;
    }
    if (has_presence && ComesLast(field)) {
      last.push_back(&field);
      continue;
    }
    if (!AppendNamed(message, field, first)) return false;
    first = false;
  }
  std::sort(last.begin(), last.end(), [](const auto* a, const auto* b) {
    return a->number() < b->number();
  });
  for (const FieldDescriptor* field : last) {
    if (!AppendNamed(message, *field, first)) return false;
    first = false;
  }
  Close('}', first);
  return true;
}

bool Writer::AppendWellKnown(const Message& message) {
  if (const auto* time =
          dynamic_cast<const google::protobuf::Timestamp*>(&message)) {
    return AppendTime(*time);
  }
  // Others are rare, and one that is a value has no lines.
  if (message.GetDescriptor()->name() != "Duration") return false;
  const absl::StatusOr<std::string> json = ByProtobuf(message, JsonLines::kOne);
  if (json.ok()) out_.append(*json);
  return json.ok();
}

bool Writer::AppendTime(const google::protobuf::Timestamp& time) {
  // From the year 1 to 9999.
  if (time.seconds() < -62135596800 || time.seconds() > 253402300799 ||
      time.nanos() < 0 || time.nanos() > 999'999'999) {
    return false;
  }
  out_.push_back('"');
  AppendUtcTime(absl::FromUnixSeconds(time.seconds()), out_);
  if (time.nanos() > 0) {
    std::string part = absl::StrCat(1'000'000'000 + time.nanos()).substr(1);
    while (absl::EndsWith(part, "000")) part.resize(part.size() - 3);
    absl::StrAppend(&out_, ".", part);
  }
  out_.append("Z\"");
  return true;
}

bool Writer::AppendField(const Message& message, const FieldDescriptor& field) {
  if (!field.is_repeated()) return AppendValue(message, field, kTheOne);
  if (!field.is_map()) return AppendList(message, field);
  out_.append("{}");
  return message.GetReflection()->FieldSize(message, &field) == 0;
}

bool Writer::AppendList(const Message& message, const FieldDescriptor& field) {
  const int size = message.GetReflection()->FieldSize(message, &field);
  Open('[');
  for (int i = 0; i < size; ++i) {
    Separate(i == 0);
    if (!AppendValue(message, field, i)) return false;
  }
  Close(']', size == 0);
  return true;
}

bool Writer::AppendValue(const Message& message, const FieldDescriptor& field,
                         int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool one = index == kTheOne;
#define OPTFARM_VALUE(Type)                    \
  (one ? reflection.Get##Type(message, &field) \
       : reflection.GetRepeated##Type(message, &field, index))
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      absl::StrAppend(&out_, OPTFARM_VALUE(Int32));
      return true;
    case FieldDescriptor::CPPTYPE_UINT32:
      absl::StrAppend(&out_, OPTFARM_VALUE(UInt32));
      return true;
    // Whole numbers that JavaScript would round are texts.
    case FieldDescriptor::CPPTYPE_INT64:
      absl::StrAppend(&out_, "\"", OPTFARM_VALUE(Int64), "\"");
      return true;
    case FieldDescriptor::CPPTYPE_UINT64:
      absl::StrAppend(&out_, "\"", OPTFARM_VALUE(UInt64), "\"");
      return true;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      AppendReal(OPTFARM_VALUE(Double));
      return true;
    case FieldDescriptor::CPPTYPE_FLOAT:
      AppendReal(OPTFARM_VALUE(Float));
      return true;
    case FieldDescriptor::CPPTYPE_BOOL:
      out_.append(OPTFARM_VALUE(Bool) ? "true" : "false");
      return true;
    case FieldDescriptor::CPPTYPE_ENUM:
      AppendEnum(field, OPTFARM_VALUE(EnumValue));
      return true;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Append(OPTFARM_VALUE(Message));
    case FieldDescriptor::CPPTYPE_STRING:
      break;
  }
#undef OPTFARM_VALUE
  std::string scratch;
  const std::string& text =
      one ? reflection.GetStringReference(message, &field, &scratch)
          : reflection.GetRepeatedStringReference(message, &field, index,
                                                  &scratch);
  if (field.type() == FieldDescriptor::TYPE_STRING) return AppendText(text);
  absl::StrAppend(&out_, "\"", absl::Base64Escape(text), "\"");
  return true;
}

template <typename Number>
void Writer::AppendReal(Number number) {
  if (std::isfinite(number)) {
    AppendExactNumber(number, out_);
  } else {
    out_.append(std::isnan(number) ? "\"NaN\""
                : number > 0       ? "\"Infinity\""
                                   : "\"-Infinity\"");
  }
}

void Writer::AppendEnum(const FieldDescriptor& field, int number) {
  const auto* value = field.enum_type()->FindValueByNumber(number);
  if (value == nullptr) {
    absl::StrAppend(&out_, number);
  } else {
    absl::StrAppend(&out_, "\"", value->name(), "\"");
  }
}

bool Writer::AppendText(const std::string& text) {
  if (IsPlain(text)) {
    out_.push_back('"');
    out_.append(text);
    out_.push_back('"');
    return true;
  }
  google::protobuf::StringValue value;
  value.set_value(text);
  const absl::StatusOr<std::string> json = ByProtobuf(value, JsonLines::kOne);
  if (json.ok()) out_.append(*json);
  return json.ok();
}

}  // namespace

absl::StatusOr<std::string> MessageToJson(const Message& message,
                                          JsonLines lines) {
  std::string json;
  // Names take as much as values; what grows is copied.
  json.reserve(2 * message.ByteSizeLong() + 64);
  if (!Writer(lines, json).Append(message)) return ByProtobuf(message, lines);
  if (lines == JsonLines::kMany) json.push_back('\n');
  return json;
}

}  // namespace optfarm::rpc
