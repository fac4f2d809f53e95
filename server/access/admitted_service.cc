#include "server/access/admitted_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

// UNITS: bytes. Less is bounded well enough by the number of calls.
constexpr size_t kSmall = 64 << 10;

absl::Status TakeIfLarge(CallRoom::Stay* stay, size_t bytes) {
  if (stay == nullptr || bytes <= kSmall) return absl::OkStatus();
  return stay->Take(bytes);
}

const google::protobuf::MethodDescriptor& Find(const std::string& method) {
  const auto* described =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
          method);
  OPTFARM_CHECK(described != nullptr);
  return *described;
}

}  // namespace

absl::Status ParseBounded(const grpc::ByteBuffer& buffer,
                          const rpc::MessageBounds& bounds,
                          CallRoom::Stay* stay,
                          google::protobuf::Message& message) {
  const std::string& name = message.GetDescriptor()->name();
  if (buffer.Length() > bounds.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the ", name, " has ", buffer.Length(), " bytes, and at most ",
        bounds.max_bytes, " are taken; send fewer things at once"));
  }
  OPTFARM_RETURN_IF_ERROR(TakeIfLarge(stay, buffer.Length()));
  grpc::Slice slice;
  if (!buffer.TrySingleSlice(&slice).ok() &&
      !buffer.DumpToSingleSlice(&slice).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", name, " cannot be decompressed"));
  }
  const absl::string_view wire(reinterpret_cast<const char*>(slice.begin()),
                               slice.size());
  OPTFARM_ASSIGN_OR_RETURN(
      const size_t parsed,
      rpc::ParsedBytes(*message.GetDescriptor(), wire, bounds));
  OPTFARM_RETURN_IF_ERROR(TakeIfLarge(stay, parsed));
  if (message.ParseFromArray(wire.data(), static_cast<int>(wire.size()))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the bytes of the ", name, " are malformed"));
}

int MethodIndex(const std::string& method) { return Find(method).index(); }

int MethodsBeside(const std::string& method) {
  return Find(method).service()->method_count();
}

}  // namespace optfarm::server
