// Bytes of blobs from where the server says that they can be had.

#ifndef OPTFARM_HTTP_URL_DOWNLOAD_H_
#define OPTFARM_HTTP_URL_DOWNLOAD_H_

#include <memory>

#include "rpc/blob_transfer.h"

namespace optfarm::http {

// Fetches by GET, from the offset on, without redirects. After a failure it
// does not want addresses for some minutes: the place cannot be reached from
// here, perhaps.
std::unique_ptr<rpc::UrlSource> MakeUrlSource();

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_URL_DOWNLOAD_H_
