#include "storage/metadata_store.h"

namespace optfarm::storage {

double ValueOf(const PointNumbers& point, v1::Metric metric) {
  switch (metric) {
    case v1::P90_US:
      return point.p90_us;
    case v1::PEAK_MEMORY_BYTES:
      return static_cast<double>(point.peak_memory_bytes);
    case v1::FILE_SIZE_BYTES:
      return static_cast<double>(point.file_size_bytes);
    default:
      return point.median_us;
  }
}

bool WriteBatch::empty() const {
  return new_jobs.empty() && jobs.empty() && tasks.empty() &&
         attempts.empty() && events.empty() && reports.empty() &&
         measurements.empty() && actions.empty() && devices.empty() &&
         device_states.empty() && participants.empty() && recipes.empty() &&
         job_blobs.empty() && project_blobs.empty() && made_blobs.empty() &&
         deleted_devices.empty();
}

}  // namespace optfarm::storage
