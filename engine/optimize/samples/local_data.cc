#include "engine/optimize/samples/local_data.h"

#include "base/files.h"
#include "base/status_macros.h"
#include "engine/optimize/samples/sample_files.h"

namespace optfarm::optimize {
namespace {

// A source of the one file.
v1::DataSource& AddFile(v1::DataSource::Role role, const std::string& path,
                        const std::string& member, LocalData* data) {
  v1::DataSource& source = *data->dataset.add_sources();
  source.set_role(role);
  source.set_member(member);
  const std::string name = BaseName(path);
  source.add_files()->set_path(name);
  data->folders.push_back(path.substr(0, path.size() - name.size()));
  return source;
}

}  // namespace

absl::StatusOr<int64_t> LocalData::AddFolder(const std::string& folder) {
  OPTFARM_ASSIGN_OR_RETURN(const FoundSamples found, FindSampleFiles(folder));
  v1::DataSource& source = *dataset.add_sources();
  source.set_role(v1::DataSource::SAMPLES);
  for (const std::string& path : found.paths) {
    source.add_files()->set_path(path);
  }
  folders.push_back(folder);
  return found.others;
}

void LocalData::AddInput(const std::string& input, const std::string& path,
                         const std::string& member) {
  AddFile(v1::DataSource::INPUT, path, member, this).set_input(input);
}

void LocalData::AddLabels(const std::string& path, const std::string& member) {
  AddFile(v1::DataSource::LABELS, path, member, this);
}

void LocalData::SetMeanAndStd(std::optional<double> mean,
                              std::optional<double> std) {
  for (v1::DataSource& source : *dataset.mutable_sources()) {
    if (source.role() == v1::DataSource::LABELS) continue;
    if (mean.has_value()) source.set_mean(*mean);
    if (std.has_value()) source.set_std(*std);
  }
}

bool LocalData::HasSamples() const {
  return Find(v1::DataSource::SAMPLES) >= 0 || Find(v1::DataSource::INPUT) >= 0;
}

int LocalData::Find(v1::DataSource::Role role) const {
  for (int i = 0; i < dataset.sources_size(); ++i) {
    if (dataset.sources(i).role() == role) return i;
  }
  return -1;
}

std::string LocalData::PathOf(int source, int file) const {
  return JoinPath(folders[source], dataset.sources(source).files(file).path());
}

}  // namespace optfarm::optimize
