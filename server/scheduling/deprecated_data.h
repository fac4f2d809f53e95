// How jobs described their data before there were sources. Requests of older
// clients and jobs in older databases are put into sources here, and sources
// into the old fields for older workers. Nothing else reads or writes those.

#ifndef OPTFARM_SERVER_SCHEDULING_DEPRECATED_DATA_H_
#define OPTFARM_SERVER_SCHEDULING_DEPRECATED_DATA_H_

#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/work.pb.h"

namespace optfarm::server {

// Whether the spec uses the deprecated fields.
bool HasDeprecatedData(const v1::JobSpec& spec);

// Puts what the deprecated fields describe into sources and clears them.
// Changes nothing in a spec without any.
void UseSources(v1::JobSpec* spec);

// Whether the deprecated fields can describe the data: all sources that feed
// inputs are scaled alike, none has a layout, and no sample is named as arrays
// were.
bool FitsDeprecatedFields(const v1::Dataset& data);

// Puts the sources of a task into the deprecated fields.
// REQUIRES: FitsDeprecatedFields(task->calibration()).
void UseDeprecatedFields(v1::OptimizeTask* task);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_DEPRECATED_DATA_H_
