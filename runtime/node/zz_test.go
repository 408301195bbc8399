package node
import ("testing";"context";"fmt";"sync";"os";"time";"strings")
func TestZZ(t *testing.T){
 mode:=os.Getenv("ZZ"); has:=func(s string)bool{return strings.Contains(mode,s)}
 lake:=newLake(t); n:=startNode(t,lake); _=n
 e,err:=openLake(t.Context(), n.cfg); if err!=nil{t.Fatal(err)}
 ctx:=context.Background()
 mk:=func()*conn{c,_:=e.connect(); if err:=c.run(ctx,home(lake));err!=nil{t.Fatal(err)}; return c}
 mk().run(ctx,"CREATE TABLE log (i INTEGER)")
 var mu sync.RWMutex; var wg sync.WaitGroup; stop:=make(chan struct{}); var em sync.Mutex; errs:=map[string]int{}; counts:=map[string]int{}
 note:=func(k string,err error){em.Lock();defer em.Unlock();counts[k]++; if err!=nil{m:=err.Error(); if len(m)>140{m=m[:140]}; m=strings.NewReplacer("0","","1","","2","","3","","4","","5","","6","","7","","8","","9","").Replace(m); errs[k+": "+m]++}}
 nd:=8
 for i:=range nd{ c:=mk(); wg.Add(1); go func(){defer wg.Done(); for{ select{case <-stop:return;default:}
   sql:=fmt.Sprintf("CREATE OR REPLACE TABLE t%d AS SELECT range AS i FROM range(1000)",i)
   if has("Dexp"){ mu.Lock(); err:=c.runAll(ctx,"BEGIN",sql,"COMMIT"); if err!=nil{c.run(ctx,"ROLLBACK")}; mu.Unlock(); note("ddl",err)
   } else { if has("Dlock"){mu.Lock()} ; if has("Dshare"){mu.RLock()}; err:=c.run(ctx,sql); note("ddl",err); if has("Dlock"){mu.Unlock()}; if has("Dshare"){mu.RUnlock()} } }}()}
 for range 4{ if !has("R"){break}; c:=mk(); wg.Add(1); go func(){defer wg.Done(); for{ select{case <-stop:return;default:}
   if has("Rlock"){mu.RLock()}
   var err error
   if has("Rwrap"){ err=c.runAll(ctx,"BEGIN TRANSACTION READ ONLY","SELECT count(*) FROM log WHERE i<5","COMMIT"); if err!=nil{c.run(ctx,"ROLLBACK")} } else {err=c.run(ctx,"SELECT count(*) FROM log WHERE i<5")}
   if has("Rlock"){mu.RUnlock()}
   note("read",err) }}()}
 for range 2{ if !has("I"){break}; c:=mk(); wg.Add(1); go func(){defer wg.Done(); for{ select{case <-stop:return;default:}
   if has("Ilock"){mu.RLock()}
   err:=c.run(ctx,"INSERT INTO log VALUES (1)")
   if has("Ilock"){mu.RUnlock()}
   note("ins",err) }}()}
 time.Sleep(6*time.Second); close(stop); wg.Wait()
 fmt.Println("MODE",mode,counts,errs)
}
