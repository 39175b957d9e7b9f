"""What disks, clocks and machines do to the product, named by the number of the case in queue_app/docs/promises.md."""
