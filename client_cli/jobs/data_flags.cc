#include "client_cli/jobs/data_flags.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/flags/flags.h"
#include "engine/optimize/samples/sample_files.h"

namespace optfarm::client_cli {
namespace {

absl::Status CheckFile(const std::string& path) {
  if (IsFolder(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is a folder, not a file"));
  }
  if (!Exists(path)) {
    return absl::NotFoundError(absl::StrCat("there is no file '", path, "'"));
  }
  return FileSize(path).status();
}

// By the name alone: what is in the file is checked where it is read.
bool IsArrayName(const std::string& file) {
  const std::string extension = LowerExtension(file);
  return extension == "npy" || extension == "npz" ||
         optimize::IsRecordsName(file) ||
         BaseName(file).find("-idx") != std::string::npos ||
         extension.starts_with("idx");
}

absl::Status AddFolder(const std::string& typed, const std::string& path,
                       optimize::LocalData* data,
                       std::vector<std::string>* remarks) {
  if (data->Find(v1::DataSource::SAMPLES) >= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", typed, "' is a second folder; put the files into one"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t others, data->AddFolder(path));
  if (others > 0) {
    remarks->push_back(
        absl::StrCat("Left out of '", path, "': ", others,
                     others == 1 ? " file that is" : " files that are",
                     " neither picture, sound nor record file."));
  }
  return absl::OkStatus();
}

// One --calibration.
absl::Status AddCalibration(const std::string& value, optimize::LocalData* data,
                            std::vector<std::string>* remarks) {
  const std::string path = ExpandHome(value);
  if (IsFolder(path)) return AddFolder(value, path, data, remarks);
  const size_t equals = value.find('=');
  const bool named = equals != std::string::npos && !Exists(path);
  const std::string name = named ? value.substr(0, equals) : "";
  const FileMember given =
      SplitMember(named ? ExpandHome(value.substr(equals + 1)) : path);
  const bool is_array = IsArrayName(given.file);
  if (!is_array && !Exists(given.file)) {
    return absl::NotFoundError(absl::StrCat(
        "there is no folder or file '", given.file,
        "'; give a folder of pictures or sounds, or NAME=FILE.npy"));
  }
  if (!is_array) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", given.file,
                     "' is not an .npy, .npz, IDX ('-idx' in the name, or "
                     ".idx) or .tfrecord "
                     "file; pictures and sounds are given as a folder"));
  }
  OPTFARM_RETURN_IF_ERROR(CheckFile(given.file));
  data->AddInput(name, given.file, given.member);
  return absl::OkStatus();
}

absl::Status AddLabels(const std::string& value, optimize::LocalData* data) {
  const FileMember given = SplitMember(value);
  OPTFARM_RETURN_IF_ERROR(CheckFile(given.file));
  data->AddLabels(given.file, given.member);
  return absl::OkStatus();
}

absl::StatusOr<v1::DataSource::Layout> ParseLayout(const std::string& word) {
  if (word == "samples") return v1::DataSource::SAMPLE_AXIS_FIRST;
  if (word == "constant") return v1::DataSource::CONSTANT;
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "' is neither 'samples' nor 'constant'"));
}

// One --layout. REQUIRES: all sources are there.
absl::Status SetLayout(const std::string& value, optimize::LocalData* data) {
  const size_t equals = value.rfind('=');
  const bool named = equals != std::string::npos;
  const std::string name = named ? value.substr(0, equals) : "";
  OPTFARM_ASSIGN_OR_RETURN(
      const v1::DataSource::Layout layout,
      ParseLayout(named ? value.substr(equals + 1) : value));
  bool found = false;
  for (v1::DataSource& source : *data->dataset.mutable_sources()) {
    if (source.role() != v1::DataSource::INPUT ||
        (named && source.input() != name)) {
      continue;
    }
    source.set_layout(layout);
    found = true;
  }
  if (found) return absl::OkStatus();
  return absl::NotFoundError(
      named ? absl::StrCat("no --calibration feeds input '", name,
                           "'; give --calibration=", name, "=FILE.npy")
            : "no --calibration is an array; give one as NAME=FILE.npy");
}

absl::Status CheckScale(const DataFlags& flags) {
  if (flags.input_std && *flags.input_std == 0) {
    return absl::InvalidArgumentError("--input_std: 0 cannot be divided by");
  }
  if (!std::isfinite(flags.input_mean.value_or(0)) ||
      !std::isfinite(flags.input_std.value_or(1))) {
    return absl::InvalidArgumentError(
        "--input_mean and --input_std: give finite numbers");
  }
  return absl::OkStatus();
}

}  // namespace

FileMember SplitMember(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || Exists(text) ||
      !Exists(text.substr(0, colon))) {
    return {text, ""};
  }
  return {text.substr(0, colon), text.substr(colon + 1)};
}

absl::StatusOr<optimize::LocalData> ReadDataFlags(
    const DataFlags& flags, std::vector<std::string>* remarks) {
  OPTFARM_RETURN_IF_ERROR(CheckScale(flags));
  optimize::LocalData data;
  for (const std::string& value : flags.calibration) {
    OPTFARM_RETURN_IF_ERROR(
        Annotate(AddCalibration(value, &data, remarks), "--calibration"));
  }
  for (const std::string& value : flags.layouts) {
    OPTFARM_RETURN_IF_ERROR(Annotate(SetLayout(value, &data), "--layout"));
  }
  if (!flags.labels.empty()) {
    OPTFARM_RETURN_IF_ERROR(
        Annotate(AddLabels(flags.labels, &data), "--labels"));
  }
  data.SetMeanAndStd(flags.input_mean, flags.input_std);
  data.dataset.set_labels_offset(static_cast<int32_t>(flags.labels_offset));
  return data;
}

}  // namespace optfarm::client_cli
