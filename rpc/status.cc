// google.rpc.Status is {1: code, 2: message, 3: repeated Any details}. Its
// generated code is no dependency of ours, so it is read and written as a set
// of unknown fields.

#include "rpc/status.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include <memory>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace optfarm::rpc {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr size_t kMaxMessageBytes = 2000;
constexpr size_t kMaxDetailBytes = 3600;  // base64 makes 4800 of them
constexpr int kCodeField = 1;
constexpr int kMessageField = 2;
constexpr int kDetailsField = 3;

std::string TypeUrl(const google::protobuf::Message& message) {
  return absl::StrCat("type.googleapis.com/",
                      message.GetDescriptor()->full_name());
}

// Cuts at a character's beginning, so that the text stays UTF-8.
std::string CutMessage(absl::string_view message) {
  if (message.size() <= kMaxMessageBytes) return std::string(message);
  size_t end = kMaxMessageBytes;
  while (end > 0 && (message[end] & 0xC0) == 0x80) --end;
  return absl::StrCat(message.substr(0, end), "...");
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message = CutMessage(status.message());
  UnknownFieldSet fields;
  fields.AddVarint(kCodeField, static_cast<uint64_t>(code));
  fields.AddLengthDelimited(kMessageField)->assign(message);
  size_t detail_bytes = 0;
  status.ForEachPayload([&](auto type_url, const absl::Cord& payload) {
    google::protobuf::Any any;
    any.set_type_url(std::string(type_url));
    any.set_value(std::string(payload));
    const std::string bytes = any.SerializeAsString();
    if (detail_bytes + bytes.size() > kMaxDetailBytes) return;
    fields.AddLengthDelimited(kDetailsField)->assign(bytes);
    detail_bytes += bytes.size();
  });
  if (detail_bytes == 0) return grpc::Status(code, message);
  std::string details;
  fields.SerializeToString(&details);
  return grpc::Status(code, message, details);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = static_cast<int>(status.error_code());
  const bool canonical =
      code >= 1 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  absl::Status result(canonical ? static_cast<absl::StatusCode>(code)
                                : absl::StatusCode::kUnknown,
                      status.error_message());
  const std::string details = status.error_details();
  UnknownFieldSet fields;
  if (details.empty() || !fields.ParseFromString(details)) return result;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    google::protobuf::Any any;
    if (field.number() == kDetailsField &&
        field.type() == UnknownField::TYPE_LENGTH_DELIMITED &&
        any.ParseFromString(field.length_delimited())) {
      result.SetPayload(any.type_url(), absl::Cord(any.value()));
    }
  }
  return result;
}

void AddDetail(const google::protobuf::Message& detail, absl::Status* status) {
  if (status->ok()) return;
  status->SetPayload(TypeUrl(detail), absl::Cord(detail.SerializeAsString()));
}

bool GetDetail(const absl::Status& status, google::protobuf::Message* detail) {
  const absl::optional<absl::Cord> payload =
      status.GetPayload(TypeUrl(*detail));
  if (!payload) return false;
  std::unique_ptr<google::protobuf::Message> parsed(detail->New());
  if (!parsed->ParseFromString(std::string(*payload))) return false;
  detail->CopyFrom(*parsed);
  return true;
}

}  // namespace optfarm::rpc
