#include "engine/optimize/samples/array_file.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/samples/idx.h"
#include "engine/formats/samples/npy.h"
#include "engine/formats/samples/npz.h"
#include "engine/formats/tensorflow/file_kind.h"

namespace optfarm::optimize {
namespace {

using formats::FileKind;
using formats::NpzMember;

absl::StatusOr<tensorflow::TensorProto> FromNpz(absl::string_view bytes,
                                                absl::string_view name,
                                                absl::string_view member) {
  const auto listed = formats::ListNpz(bytes);
  if (!listed.ok()) {
    return Annotate(listed.status(), absl::StrCat("While reading ", name));
  }
  const std::vector<NpzMember>& members = *listed;
  const std::string names =
      absl::StrJoin(members, ", ", [](std::string* out, const NpzMember& m) {
        absl::StrAppend(out, "'", m.name, "'");
      });
  for (const NpzMember& m : members) {
    const bool is_wanted =
        member.empty() ? members.size() == 1 : m.name == member;
    if (!is_wanted) continue;
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string npy,
        formats::ReadNpzMember(bytes, m, formats::kMaxNpyBytes));
    return formats::ParseNpy(npy, absl::StrCat(name, ":", m.name));
  }
  if (member.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' holds ", members.size(),
                     " arrays; choose one as ", name, ":NAME of ", names));
  }
  return absl::NotFoundError(
      absl::StrCat("'", name, "' has no array '", member, "'; it has ", names));
}

}  // namespace

bool IsArray(absl::string_view bytes) {
  const FileKind kind = formats::IdentifyBytes(bytes);
  return kind == FileKind::kNpy || kind == FileKind::kZip ||
         formats::IsIdx(bytes);
}

absl::StatusOr<tensorflow::TensorProto> ParseArray(absl::string_view bytes,
                                                   absl::string_view name,
                                                   absl::string_view member) {
  if (formats::IdentifyBytes(bytes) == FileKind::kZip) {
    return FromNpz(bytes, name, member);
  }
  if (formats::IsIdx(bytes)) return formats::ParseIdx(bytes, name);
  return formats::ParseNpy(bytes, name);
}

absl::StatusOr<tensorflow::TensorProto> LoadArray(const std::string& path,
                                                  absl::string_view member) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           ReadFile(path, formats::kMaxNpyBytes));
  return ParseArray(bytes, path, member);
}

}  // namespace optfarm::optimize
