#include "server/scheduling/data_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/conventions/names.h"
#include "storage/records.h"

namespace optfarm::server {
namespace {

using Role = v1::DataSource;

constexpr int kMaxFiles = 20000;
constexpr int kMaxInputs = 1000;
constexpr size_t kMaxNameBytes = 1024;

std::string NameOf(v1::DataSource::Role role) {
  return v1::DataSource::Role_Name(role);
}

// Checks one source. `path` says which: "calibration.sources[2]".
class SourceCheck {
 public:
  SourceCheck(const v1::DataSource& source, int number)
      : source_(source),
        path_(absl::StrCat("calibration.sources[", number, "]")) {}

  absl::Status Run() const {
    OPTFARM_RETURN_IF_ERROR(CheckRole());
    OPTFARM_RETURN_IF_ERROR(CheckFiles());
    OPTFARM_RETURN_IF_ERROR(
        CheckText("input", source_.input(), {Role::INPUT},
                  "samples feed every input that no INPUT source feeds, and "
                  "labels feed none"));
    OPTFARM_RETURN_IF_ERROR(CheckText("member", source_.member(),
                                      {Role::INPUT, Role::LABELS},
                                      "files of samples are used as a whole"));
    OPTFARM_RETURN_IF_ERROR(CheckScale());
    return CheckLayout();
  }

  absl::Status Wrong(absl::string_view field, absl::string_view problem) const {
    return absl::InvalidArgumentError(
        absl::StrCat("job spec: ", path_, field, " ", problem));
  }

 private:
  using Roles = std::initializer_list<v1::DataSource::Role>;

  bool Is(Roles roles) const {
    return std::find(roles.begin(), roles.end(), source_.role()) != roles.end();
  }

  absl::Status CheckRole() const {
    if (Is({Role::SAMPLES, Role::INPUT, Role::LABELS})) return absl::OkStatus();
    constexpr char kAdvice[] = "; give SAMPLES, INPUT or LABELS";
    if (source_.role() == Role::ROLE_UNSPECIFIED) {
      return Wrong(".role", absl::StrCat("is missing", kAdvice));
    }
    return Wrong(".role", absl::StrCat("is ", static_cast<int>(source_.role()),
                                       kAdvice));
  }

  absl::Status CheckFiles() const {
    const int count = source_.files_size();
    const int most = Is({Role::SAMPLES}) ? kMaxFiles : 1;
    if (count < 1 || count > most) {
      return Wrong(
          ".files",
          absl::StrCat(
              "has ", count, count == 1 ? " entry" : " entries", "; with role ",
              NameOf(source_.role()), " give ",
              most == 1 ? "exactly one" : absl::StrCat("1 to ", most)));
    }
    absl::flat_hash_set<absl::string_view> paths;
    for (const v1::DataFile& file : source_.files()) {
      OPTFARM_RETURN_IF_ERROR(
          CheckRelativePath("calibration file", file.path()));
      if (!paths.insert(file.path()).second) {
        return Wrong(".files",
                     absl::StrCat("lists ", Quoted(file.path()), " twice"));
      }
      const auto id = storage::BlobIdFromProto(file.digest());
      if (!id.ok()) return Annotate(id.status(), Quoted(file.path()));
    }
    return absl::OkStatus();
  }

  // A text that only sources with some of the roles have.
  absl::Status CheckText(absl::string_view field, const std::string& text,
                         Roles roles, absl::string_view reason) const {
    const std::string name = absl::StrCat(".", field);
    if (!text.empty() && !Is(roles)) {
      return Wrong(name, absl::StrCat("is ", Quoted(text), " and the role is ",
                                      NameOf(source_.role()),
                                      "; leave it empty: ", reason));
    }
    const bool clean =
        text.size() <= kMaxNameBytes &&
        std::none_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_iscntrl(c); });
    if (clean) return absl::OkStatus();
    return Wrong(
        name, absl::StrCat("is ", Quoted(text), "; give at most ",
                           kMaxNameBytes, " bytes without control characters"));
  }

  absl::Status CheckScale() const {
    const bool given = source_.has_mean() || source_.has_std();
    if (given && Is({Role::LABELS})) {
      return Wrong(source_.has_mean() ? ".mean" : ".std",
                   "is given and the role is LABELS; leave it out: classes are "
                   "not scaled (labels_offset shifts them)");
    }
    if (!std::isfinite(source_.mean())) {
      return Wrong(".mean", absl::StrCat("is ", source_.mean(),
                                         "; give a finite number"));
    }
    if (source_.has_std() &&
        (!std::isfinite(source_.std()) || source_.std() == 0)) {
      return Wrong(".std", absl::StrCat("is ", source_.std(),
                                        "; give a finite number other than 0, "
                                        "or leave it out for 1"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckLayout() const {
    if (!v1::DataSource::Layout_IsValid(source_.layout())) {
      return Wrong(".layout",
                   absl::StrCat("is ", static_cast<int>(source_.layout()),
                                "; give SAMPLE_AXIS_FIRST or CONSTANT, or "
                                "leave it out"));
    }
    if (source_.layout() == Role::LAYOUT_UNSPECIFIED || Is({Role::INPUT})) {
      return absl::OkStatus();
    }
    return Wrong(
        ".layout",
        absl::StrCat("is ", v1::DataSource::Layout_Name(source_.layout()),
                     " and the role is ", NameOf(source_.role()),
                     "; leave it out: only arrays of INPUT sources "
                     "have a layout"));
  }

  const v1::DataSource& source_;
  const std::string path_;
};

std::string FirstPath(const v1::DataSource& source) {
  return source.files().empty() ? "" : source.files(0).path();
}

}  // namespace

absl::Status CheckDataset(const v1::Dataset& data) {
  int inputs = 0;
  absl::flat_hash_set<int> roles;
  absl::flat_hash_set<absl::string_view> fed;
  for (int i = 0; i < data.sources_size(); ++i) {
    const v1::DataSource& source = data.sources(i);
    const SourceCheck check(source, i);
    OPTFARM_RETURN_IF_ERROR(check.Run());
    if (source.role() != Role::INPUT) {
      if (roles.insert(source.role()).second) continue;
      return check.Wrong(
          "", absl::StrCat("is the second with role ", NameOf(source.role()),
                           "; put its files into the first"));
    }
    if (++inputs > kMaxInputs) {
      return check.Wrong("", absl::StrCat("is one INPUT source too many; give "
                                          "at most ",
                                          kMaxInputs));
    }
    if (!fed.insert(source.input()).second) {
      return check.Wrong(
          ".input",
          source.input().empty()
              ? "is empty; with several INPUT sources give each its input"
              : absl::StrCat("is ", Quoted(source.input()),
                             ", which another source feeds; give each input "
                             "one source"));
    }
  }
  return absl::OkStatus();
}

bool HasSamples(const v1::Dataset& data) {
  return std::any_of(data.sources().begin(), data.sources().end(),
                     [](const v1::DataSource& source) {
                       return source.role() != Role::LABELS;
                     });
}

void SortDataset(v1::Dataset* data) {
  for (v1::DataSource& source : *data->mutable_sources()) {
    std::sort(source.mutable_files()->begin(), source.mutable_files()->end(),
              [](const v1::DataFile& a, const v1::DataFile& b) {
                return a.path() < b.path();
              });
  }
  std::sort(data->mutable_sources()->begin(), data->mutable_sources()->end(),
            [](const v1::DataSource& a, const v1::DataSource& b) {
              return std::make_tuple(a.role(), a.input(), FirstPath(a)) <
                     std::make_tuple(b.role(), b.input(), FirstPath(b));
            });
}

}  // namespace optfarm::server
