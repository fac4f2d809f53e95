#include <string>

#include "absl/strings/str_cat.h"
#include "engine/api/c_api.h"
#include "engine/api/guard.h"

struct optfarm_status {
  optfarm_code code = OPTFARM_OK;
  std::string message;
};

namespace optfarm::api {
namespace {

// Never deleted. Its message fits into the string itself: making it needs no
// memory.
optfarm_status* SharedOutOfMemory() {
  static optfarm_status status{OPTFARM_RESOURCE_EXHAUSTED, "out of memory"};
  return &status;
}

}  // namespace

optfarm_status* OutOfMemory() noexcept { return SharedOutOfMemory(); }

optfarm_status* ToC(const absl::Status& status) noexcept {
  if (status.ok()) return nullptr;
  try {
    return new optfarm_status{static_cast<optfarm_code>(status.raw_code()),
                              std::string(status.message())};
  } catch (...) {
    return OutOfMemory();
  }
}

optfarm_status* Unexpected(const char* what) noexcept {
  try {
    return ToC(absl::InternalError(absl::StrCat("unexpected: ", what)));
  } catch (...) {
    return OutOfMemory();
  }
}

absl::Status MissingArgument(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is NULL"));
}

}  // namespace optfarm::api

using optfarm::api::OutOfMemory;

extern "C" {

int32_t optfarm_api_version(void) { return OPTFARM_API_VERSION; }

const char* optfarm_version(void) { return OPTFARM_VERSION; }

optfarm_code optfarm_status_code(const optfarm_status* status) {
  return status == nullptr ? OPTFARM_OK : status->code;
}

const char* optfarm_status_message(const optfarm_status* status) {
  return status == nullptr ? "" : status->message.c_str();
}

void optfarm_status_delete(optfarm_status* status) {
  if (status != OutOfMemory()) delete status;
}

}  // extern "C"
