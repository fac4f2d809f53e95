#include "server/scheduling/deprecated_data.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "server/conventions/names.h"

// The one file that uses the deprecated fields.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace optfarm::server {
namespace {

constexpr absl::string_view kArrays = "arrays/";

// How older programs told arrays from samples.
bool IsArray(const std::string& path) {
  return LowerExtension(path) == "npy" || absl::StartsWith(path, kArrays);
}

// optctl numbered arrays: "arrays/1/x.npy" is x.npy.
std::string ArrayName(absl::string_view path) {
  absl::string_view rest = path;
  if (!absl::ConsumePrefix(&rest, kArrays)) return std::string(path);
  size_t digits = 0;
  while (digits < rest.size() && absl::ascii_isdigit(rest[digits])) ++digits;
  const bool numbered =
      digits > 0 && digits + 1 < rest.size() && rest[digits] == '/';
  return std::string(numbered ? rest.substr(digits + 1) : path);
}

// A scale was given unless both numbers are 0, and a deviation of 0 was 1.
void SetScale(const v1::Dataset& data, v1::DataSource* source) {
  if (data.input_mean() == 0 && data.input_std() == 0) return;
  source->set_mean(data.input_mean());
  source->set_std(data.input_std() == 0 ? 1 : data.input_std());
}

// A feature stands behind the name's last colon.
v1::DataSource LabelsSource(const v1::NamedBlob& labels) {
  const std::string& name = labels.name();
  const size_t colon = name.rfind(':');
  v1::DataSource source;
  source.set_role(v1::DataSource::LABELS);
  v1::DataFile& file = *source.add_files();
  file.set_path(BaseName(name.substr(0, colon)));
  if (colon != name.npos) source.set_member(name.substr(colon + 1));
  // The name was for people, and might be anything.
  if (!CheckRelativePath("labels", file.path()).ok()) file.set_path("labels");
  *file.mutable_digest() = labels.digest();
  return source;
}

// Of a dataset, in the order samples, arrays.
void AddSources(v1::Dataset* data) {
  v1::DataSource samples;
  samples.set_role(v1::DataSource::SAMPLES);
  SetScale(*data, &samples);
  std::vector<v1::DataSource> arrays;
  for (const v1::DatasetFile& old : data->files()) {
    const bool is_array = IsArray(old.path());
    v1::DataSource& source = is_array ? arrays.emplace_back() : samples;
    v1::DataFile& file = *source.add_files();
    file.set_path(is_array ? ArrayName(old.path()) : old.path());
    *file.mutable_digest() = old.digest();
    if (!is_array) continue;
    source.set_role(v1::DataSource::INPUT);
    source.set_input(old.input());
    source.set_member(old.member());
    SetScale(*data, &source);
  }
  if (!samples.files().empty()) *data->add_sources() = std::move(samples);
  for (v1::DataSource& array : arrays) *data->add_sources() = std::move(array);
}

bool SameScale(const v1::DataSource& a, const v1::DataSource& b) {
  return a.has_mean() == b.has_mean() && a.mean() == b.mean() &&
         a.has_std() == b.has_std() && a.std() == b.std();
}

}  // namespace

bool HasDeprecatedData(const v1::JobSpec& spec) {
  const v1::Dataset& data = spec.calibration();
  return spec.has_labels() || !data.files().empty() || data.input_mean() != 0 ||
         data.input_std() != 0;
}

void UseSources(v1::JobSpec* spec) {
  if (!HasDeprecatedData(*spec)) return;
  v1::Dataset& data = *spec->mutable_calibration();
  AddSources(&data);
  if (spec->has_labels()) *data.add_sources() = LabelsSource(spec->labels());
  data.clear_files();
  data.clear_input_mean();
  data.clear_input_std();
  spec->clear_labels();
}

bool FitsDeprecatedFields(const v1::Dataset& data) {
  const v1::DataSource* first = nullptr;
  for (const v1::DataSource& source : data.sources()) {
    if (source.role() == v1::DataSource::LABELS) continue;
    if (source.layout() != v1::DataSource::LAYOUT_UNSPECIFIED) return false;
    if (first == nullptr) first = &source;
    if (!SameScale(source, *first)) return false;
    if (source.role() != v1::DataSource::SAMPLES) continue;
    for (const v1::DataFile& file : source.files()) {
      if (IsArray(file.path())) return false;
    }
  }
  return true;
}

void UseDeprecatedFields(v1::OptimizeTask* task) {
  v1::Dataset& data = *task->mutable_calibration();
  for (const v1::DataSource& source : data.sources()) {
    if (source.role() == v1::DataSource::LABELS) {
      v1::NamedBlob& labels = *task->mutable_labels();
      *labels.mutable_digest() = source.files(0).digest();
      // What stands behind a colon would be a feature.
      labels.set_name(
          absl::StrReplaceAll(BaseName(source.files(0).path()), {{":", "_"}}));
      if (!source.member().empty()) {
        absl::StrAppend(labels.mutable_name(), ":", source.member());
      }
      continue;
    }
    for (const v1::DataFile& file : source.files()) {
      v1::DatasetFile& old = *data.add_files();
      *old.mutable_digest() = file.digest();
      old.set_path(file.path());
      if (source.role() == v1::DataSource::SAMPLES) continue;
      old.set_path(absl::StrCat(kArrays, data.files_size(), "/", file.path()));
      old.set_input(source.input());
      old.set_member(source.member());
    }
    if (!source.has_mean() && !source.has_std()) continue;
    data.set_input_mean(source.mean());
    data.set_input_std(source.has_std() ? source.std() : 1);
  }
  data.clear_sources();
}

}  // namespace optfarm::server
