#include "storage/sql/database.h"

#include "base/status_macros.h"

namespace optfarm::storage {

void SqlStatement::BindTime(int parameter, absl::Time value) {
  if (value == absl::InfinitePast()) {
    BindNull(parameter);
  } else {
    BindInt(parameter, absl::ToUnixMicros(value));
  }
}

absl::Status SqlStatement::Run() {
  while (Step()) {
  }
  return status();
}

absl::Time SqlStatement::Time(int column) const {
  return IsNull(column) ? absl::InfinitePast()
                        : absl::FromUnixMicros(Int(column));
}

absl::Status SqlTransaction::Commit() {
  OPTFARM_RETURN_IF_ERROR(status_);
  OPTFARM_RETURN_IF_ERROR(db_.Commit());
  open_ = false;
  return absl::OkStatus();
}

}  // namespace optfarm::storage
