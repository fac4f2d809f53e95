// Stored records as the messages that clients see.

#ifndef OPTFARM_SERVER_DELIVERY_JOB_VIEW_H_
#define OPTFARM_SERVER_DELIVERY_JOB_VIEW_H_

#include "absl/status/status.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/results.pb.h"
#include "storage/metadata_store.h"
#include "storage/records.h"

namespace optfarm::server {

// Without report and measurements.
v1::Job ToProto(const storage::StoredJob& stored);
v1::Task ToProto(const storage::TaskRecord& task);
v1::Result ToProto(const storage::MeasurementRecord& record);
v1::Series ToProto(const storage::SeriesKey& key);
void MoveTo(storage::PointRecord&& point, v1::SeriesPoint& proto);

// Adds what only the full view has.
void AddReport(const v1::Report& report, v1::Job& job);

// Adds all that came of a job, as far as it is there: report, measurements and
// verdicts. ERRORS: those of the store.
absl::Status AddOutcome(storage::MetadataStore& store, v1::Job& job);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_JOB_VIEW_H_
