# Acme was here before there was a module. These say where its objects are now, so that none is made anew.
moved {
  from = tenant.acme
  to   = module.tenant["acme"].tenant.this
}

moved {
  from = tenant_db.lake
  to   = module.tenant["acme"].tenant_db.lake
}

moved {
  from = pool.bi
  to   = module.tenant["acme"].pool.each["bi"]
}
